# SPDX-License-Identifier: BSD-3-Clause
"""One side of a comparison: a process that times fastpe's contenders when it is told to, by JSON lines."""

from __future__ import annotations

import json
import sys
from typing import Any

import fastpe
from benchmarks import workloads
from benchmarks.harness import Batches, Effort, check_answers
from benchmarks.workloads import Selection


def main() -> None:
    factories = {f"{factory.group} {factory.name}": factory for factory in workloads.factories()}
    batches: list[Batches] = []

    def answer(request: dict[str, Any]) -> object:
        nonlocal batches
        if request["do"] == "describe":
            return {"file": fastpe.__file__, "config": fastpe.show_config(), "cases": list(factories)}
        if request["do"] == "prepare":
            batches = []
            case = factories[request["case"]].build(Selection(peers=False, slow_peers=False))
            check_answers(case)
            case.reset()
            batches = [Batches(contender, Effort(**request["effort"])) for contender in case.contenders]
            return [contender.name for contender in case.contenders]
        return [batch.seconds_per_call() for batch in batches]

    for line in sys.stdin:
        try:
            reply = {"value": answer(json.loads(line))}
        except Exception as error:  # noqa: BLE001
            # A commit that lacks a feature, or gets it wrong, is a row of the comparison.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
