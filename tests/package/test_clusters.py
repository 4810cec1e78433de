# SPDX-License-Identifier: BSD-3-Clause
"""The documentation's recipes for Ray Data and Spark, run as they stand there on a cluster of only this machine.

Run with: ``pip install '.[test]' --group clusters && pytest -m clusters tests/package/test_clusters.py``
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastpe

from ..oracles.docs_pages import recipe

pytestmark = [
    pytest.mark.clusters,
    # Of Ray, Spark and their dependencies: the workers' own are not seen here anyway.
    pytest.mark.filterwarnings("ignore"),
]

Names = dict[str, Any]


@pytest.fixture
def names() -> Names:
    """What the guide's snippets before the recipe have defined."""
    x = np.random.default_rng(0).standard_normal((4, 128, 256), dtype=np.float32)
    return {"np": np, "fastpe": fastpe, "x": x, "d_model": 256}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: pip install --group clusters")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_ray_data(ray: Any, names: Names) -> None:
    before = names["x"].copy()
    exec(recipe("ray"), names)  # noqa: S102
    rows = {row["id"]: row["embeddings"] for row in names["rows"]}
    result = np.stack([rows[index] for index in range(len(before))])
    assert result.tobytes() == fastpe.add(before).tobytes()
    np.testing.assert_array_equal(names["x"], before)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("needs Spark: pip install --group clusters")
    if shutil.which("java") is None:
        pytest.skip("needs Java, version 17 or later")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    with builder.config("spark.driver.memory", "1g").getOrCreate() as session:
        yield session


def test_spark(spark: Any, names: Names) -> None:
    exec(recipe("pyspark"), names)  # noqa: S102
    result = np.array(names["rows"], np.float32)
    assert result.tobytes() == fastpe.add(names["x"]).tobytes()
