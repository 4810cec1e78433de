# SPDX-License-Identifier: BSD-3-Clause
"""A process that measures one installation of fastpe with one instruction set and number of threads; both of its ends."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import root


@dataclasses.dataclass(frozen=True)
class Setting:
    """What holds for a whole process."""

    instruction_set: str
    threads: int

    def __str__(self) -> str:
        return f"{self.instruction_set}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @property
    def pause_seconds(self) -> float:
        """Until idle threads have stopped spinning: OpenMP's do so for milliseconds."""
        return 0.005 if self.threads > 1 else 0.0


def settings(config: dict[str, Any]) -> list[Setting]:
    """One thread and all, with the best instruction set and with AVX2; `config` is what `fastpe.show_config` returns."""
    chosen = dict.fromkeys([config["instruction_set"], *({"avx2"} & {*config["available_instruction_sets"]})])
    return [Setting(name, threads) for name in chosen for threads in sorted({config["threads"], 1})]


class WorkerError(Exception):
    """What went wrong in the process, in its words."""


Ask = Callable[..., Any]  # the asking end: a request's keywords go to `reply` below


@contextlib.contextmanager
def worker(python: str, setting: Setting | None = None, site: pathlib.Path | None = None) -> Iterator[Ask]:
    """A worker run by this Python, with what is installed for it, or in `site` before that."""
    environment = dict(os.environ)
    if setting is not None:
        environment |= {"FASTPE_ISA": setting.instruction_set, "FASTPE_NUM_THREADS": str(setting.threads)}
    command = [python, "-m", "benchmarks.worker"]
    if site is not None:
        # Without the site module: an editable installation would go before PYTHONPATH.
        command.insert(1, "-S")
        environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(os.path.isdir, sys.path)])
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, env=environment, stdin=pipe, stdout=pipe, text=True) as process:

        def ask(**request: Any) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps(request), file=process.stdin, flush=True)
            reply = json.loads(process.stdout.readline() or f'{{"error": "{python} ended"}}')
            if "error" in reply:
                raise WorkerError(reply["error"])
            return reply["value"]

        try:
            yield ask
        finally:
            process.kill()


def _versions() -> dict[str, str]:
    """Of the alternatives that are installed, and the instruction sets that they use."""
    from benchmarks import rivals

    found = {"Python": platform.python_version()}
    for name in ("numpy", "torch", "onnxruntime", "ml_dtypes"):
        if (module := rivals.module(name)) is not None:
            found[name] = module.__version__
    if used := rivals.module("numpy").show_config("dicts").get("SIMD Extensions", {}).get("found"):
        found["numpy"] += f" (uses {used[-1]})"
    if "torch" in found:
        found["torch"] += f" (uses {rivals.module('torch').backends.cpu.get_cpu_capability()})"
    return found


def main() -> None:
    import fastpe
    from benchmarks.cases import all_cases
    from benchmarks.harness import Batches, Effort, measure

    cases = {case.name: case for case in all_cases()}
    prepared: list[Batches] = []
    config = fastpe.show_config("dicts")
    pause_seconds = Setting(config["instruction_set"], config["threads"]).pause_seconds

    def reply(do: str, case: str = "", effort: Any = None) -> Any:
        if do == "describe":
            groups = {case.name: case.group for case in cases.values()}
            return {"file": fastpe.__file__, "config": config, "versions": _versions(), "groups": groups}
        if do == "measure":
            measured = measure(cases[case], Effort(**effort), pause_seconds=pause_seconds)
            return {name: dataclasses.asdict(measurement) for name, measurement in measured.items()}
        if do == "prepare":  # makes fastpe's contender; a sum of its first answer's bits
            contender = next(cases[case].build(cases[case].shape))
            parts = answer if isinstance(answer := contender.answer(), tuple) else (answer,)
            bits = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
            prepared[:] = [Batches(contender, Effort(**effort))]
            return bits
        return prepared[0].seconds_per_call()

    for line in sys.stdin:
        try:
            answered = {"value": reply(**json.loads(line))}
        except Exception as error:  # noqa: BLE001 - a version that lacks a feature is a row of a comparison
            answered = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main()
