# SPDX-License-Identifier: BSD-3-Clause
"""Many callers: right results, few threads, the processors this process may use, and no spinning afterwards."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import fastpe

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
needs_openmp = pytest.mark.skipif(not fastpe.show_config()["openmp"], reason="built without OpenMP: one thread always")


@pytest.mark.parametrize("shared", [True, False], ids=["one-encoder", "many-encoders"])
def test_sixteen_callers(shared: bool) -> None:
    callers, rows, d_model = 16, 1024, 512
    encoding = fastpe.PositionalEncoding(d_model, max_len=64)
    expected = fastpe.encode(rows, d_model, num_threads=1)
    start = threading.Barrier(callers)
    wrong: list[int] = []

    def call(caller: int) -> None:
        own = encoding if shared else fastpe.PositionalEncoding(d_model, max_len=64)
        x = np.ones((rows, d_model), np.float32)
        start.wait()
        for _ in range(4):
            x[...] = 1
            own.add_(x, num_threads=2)
            short = own.encode([3, 5], dtype=np.float16)
            if not ((x == expected + 1).all() and (short == expected[[3, 5]].astype(np.float16)).all()):
                wrong.append(caller)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_proc
@needs_openmp
def test_threads_are_bounded(run_script: Callable[..., str]) -> None:
    # 32 callers that ask for 8 threads each: at most 4 of them own a team, of 7 threads beside the caller.
    most = run_script("""
        import os, threading
        import numpy as np, fastpe
        callers, counts = 32, []
        before = len(os.listdir("/proc/self/task"))
        start = threading.Barrier(callers)
        def call():
            x = np.zeros((2048, 512), np.float32)
            start.wait()
            for _ in range(3):
                fastpe.add_(x, num_threads=8)
                counts.append(len(os.listdir("/proc/self/task")))
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(max(counts) - before - callers)
    """)
    assert 0 < int(most) <= 4 * 7


@needs_proc
@needs_openmp
def test_idle_threads_do_not_spin(run_script: Callable[..., str]) -> None:
    seconds = run_script("""
        import time
        import numpy as np, fastpe
        x = np.zeros((4096, 512), np.float32)
        fastpe.add_(x, num_threads=2)
        before = time.process_time()
        time.sleep(1.0)
        print(time.process_time() - before)
    """)
    assert float(seconds) < 0.1


COUNT = "import fastpe; print(fastpe.show_config()['threads'])"


@needs_openmp
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"FASTPE_NUM_THREADS": "3"}, 3),
        ({"FASTPE_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "1"}, 1),
    ],
)
def test_thread_count_of_environment(
    environment: dict[str, str], expected: int, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTPE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert int(run_script(COUNT, **environment)) == expected


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "99999999999"])
def test_wrong_thread_count_is_refused_at_import(value: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", "import fastpe"],
        check=False,
        env={**os.environ, "FASTPE_NUM_THREADS": value},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1
    assert f"ValueError: FASTPE_NUM_THREADS is '{value}', expected a positive integer" in process.stderr


@needs_openmp
@pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset is not installed")
def test_affinity_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FASTPE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    processor = min(os.sched_getaffinity(0))
    command = ["taskset", "--cpu-list", str(processor), sys.executable, "-c", textwrap.dedent(COUNT)]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip() == "1"


@pytest.fixture
def control_group() -> Iterator[pathlib.Path]:
    for root, quota_file, quota in (
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "60000"),
        ("/sys/fs/cgroup", "cpu.max", "60000 100000"),
    ):
        group = pathlib.Path(root) / f"fastpe-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / quota_file).write_text(quota)
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("may not make a control group with a processor quota here")


@needs_openmp
def test_quota_of_control_group_is_respected(
    control_group: pathlib.Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTPE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    join = f"import os; open('{control_group / 'cgroup.procs'}', 'w').write(str(os.getpid()))\n"
    assert int(run_script(join + COUNT)) == 1
