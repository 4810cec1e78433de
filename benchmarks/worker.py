# SPDX-License-Identifier: BSD-3-Clause
"""A process that measures one installation of fastpe with one instruction set and number of threads; both of its ends."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

root = pathlib.Path(__file__).parent.parent


@dataclasses.dataclass(frozen=True)
class Setting:
    """What holds for a whole process."""

    instruction_set: str
    threads: int

    def __str__(self) -> str:
        return f"{self.instruction_set}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    def environment(self) -> dict[str, str]:
        return {"FASTPE_ISA": self.instruction_set, "FASTPE_NUM_THREADS": str(self.threads)}


def settings(config: dict[str, Any]) -> list[Setting]:
    """All threads and one, with each instruction set in `fastpe.show_config()` that is meant to be fast."""
    available = config["available_instruction_sets"]
    fast = [name for name in available if name != "baseline"] or available
    return [Setting(name, threads) for name in fast for threads in sorted({config["threads"], 1}, reverse=True)]


class WorkerError(Exception):
    """What went wrong in the process, in its words."""


class Worker:
    """The asking end: requests and replies are lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **request: Any) -> Any:
        return ask_all([self], **request)[0]

    def send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"the process ended with exit status {self._process.wait()}"}
        reply: dict[str, Any] = json.loads(line)
        return reply


def ask_all(workers: Sequence[Worker], **request: Any) -> list[Any]:
    """All at once; their replies."""
    for worker in workers:
        worker.send(request)
    replies = [worker.receive() for worker in workers]
    for reply in replies:
        if "error" in reply:
            raise WorkerError(reply["error"])
    return [reply["value"] for reply in replies]


@contextlib.contextmanager
def worker(python: str, setting: Setting | None = None, site: pathlib.Path | None = None) -> Iterator[Worker]:
    """A worker run by this Python, with what is installed for it, or in `site` before that."""
    environment = {**os.environ, **(setting.environment() if setting else {})}
    arguments = [python, "-m", "benchmarks.worker"]
    if site is not None:
        # Without the site module: an editable installation would go before PYTHONPATH.
        arguments.insert(1, "-S")
        environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(os.path.isdir, sys.path)])
    process = subprocess.Popen(
        arguments, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield Worker(process)
        finally:
            process.kill()


def main() -> None:
    import numpy as np

    import fastpe
    from benchmarks import cases
    from benchmarks.harness import Batches, Effort, Measurement, Selection, measure, result_of

    factories = cases.factories()
    batches: list[Batches] = []

    def prepare(name: str, effort: Effort, *, sums: bool) -> dict[str, str]:
        """Contenders' names, with sums of their answers' bits where they are asked for."""
        batches.clear()
        case = factories[name](Selection(rivals=False))
        found = {}
        for contender in case.contenders:
            case.reset()
            found[contender.name] = hashlib.sha256(contender.answer().view(np.uint8)).hexdigest() if sums else ""
        batches.extend(Batches(contender, effort) for contender in case.contenders)
        return found

    def result(
        name: str, effort: Effort, selection: Selection, earlier: Sequence[dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """What was measured, and the result of this and `earlier` measurements by other processes."""
        from benchmarks import oracle, peers

        oracle.check_itself()
        peers.use_threads(fastpe.show_config()["threads"])
        case = factories[name](selection)
        measured = measure(case, effort)
        all_measured = [*(Measurement(**values) for values in earlier), measured]
        return {
            "measured": dataclasses.asdict(measured),
            "result": dataclasses.asdict(result_of(case, all_measured)),
        }

    def answer(request: dict[str, Any]) -> object:
        if request["do"] == "describe":
            return {"file": fastpe.__file__, "config": fastpe.show_config(), "cases": list(factories)}
        if request["do"] == "prepare":
            return prepare(request["case"], Effort(**request["effort"]), sums=request["sums"])
        if request["do"] == "measure":
            effort, selection = Effort(**request["effort"]), Selection(**request["selection"])
            return result(request["case"], effort, selection, request["earlier"])
        return [batch.seconds_per_call() for batch in batches]

    for line in sys.stdin:
        try:
            reply = {"value": answer(json.loads(line))}
        except Exception as error:  # noqa: BLE001
            # A version that lacks a feature is a row of a comparison.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
