# SPDX-License-Identifier: BSD-3-Clause
"""What was measured: how it is measured, and how it is kept, one JSON file for each kind of machine."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

from benchmarks.harness import Effort, Figure, Measurement, figures
from benchmarks.worker import Setting, settings, worker

directory = pathlib.Path(__file__).parent / "results"


@dataclasses.dataclass(frozen=True)
class Record:
    """A machine's figures: of each setting, case and contender, and of fresh processes."""

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    processes: int
    others_share: float  # of a processor, which other programs used meanwhile
    settings: dict[str, dict[str, dict[str, Figure]]]
    fresh: dict[str, dict[str, float]]  # medians, by unit

    def best(self) -> list[tuple[int, dict[str, dict[str, Figure]]]]:
        """Numbers of threads, and the cases' figures: of the best instruction set, which comes first."""
        isa, *_ = (name.split(", ")[0] for name in self.settings)
        return [(int(name.split()[1]), cases) for name, cases in self.settings.items() if name.startswith(f"{isa},")]

    def to_json(self) -> str:
        """Four digits of each figure, a line for each case."""
        text = json.dumps(dataclasses.asdict(self))
        text = json.dumps(json.loads(text, parse_float=lambda digits: float(f"{float(digits):.4g}")))
        return text.replace("}}, ", "}},\n") + "\n"


def read(path: pathlib.Path) -> Record:
    values = json.loads(path.read_text(encoding="utf-8"))
    for contenders in (each for cases in values["settings"].values() for each in cases.values()):
        contenders.update({name: Figure(**found) for name, found in contenders.items()})
    return Record(**values)


def read_all() -> list[Record]:
    """One of each kind of machine that was measured."""
    return [read(path) for path in sorted(directory.glob("*.json"))]


class Others:
    """The share of a processor that other programs use meanwhile, where Linux says it."""

    def __init__(self) -> None:
        self._time, self._begin = time.monotonic(), self._seconds()

    @staticmethod
    def _seconds() -> float:
        """Of all processors together, but idle ones, without this process and its children that have ended."""
        if not (stat := pathlib.Path("/proc/stat")).exists():
            return 0.0
        user, nice, system, _idle, _wait, *interrupts_and_steal = map(int, stat.read_text("ascii").split()[1:9])
        return (user + nice + system + sum(interrupts_and_steal)) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])

    def share(self) -> float:
        return max(0.0, self._seconds() - self._begin) / (time.monotonic() - self._time)


def _machine() -> dict[str, str]:
    lscpu = ""
    if shutil.which("lscpu") is not None:
        environment = {**os.environ, "LC_ALL": "C"}
        lscpu = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env=environment).stdout
    cpu = collections.defaultdict(lambda: "?", re.findall(r"^ *(.+?): +(.+?)(?: \(.*)?$", lscpu, re.MULTILINE))
    name = cpu["Model name"] if lscpu else platform.processor() or platform.machine()
    return {
        "processor": f"{name} (family {cpu['CPU family']}, model {cpu['Model']})",
        "processors": f"{os.cpu_count()}" + (" of a virtual machine" if "Hypervisor vendor" in cpu else ""),
        "caches": f"L1 {cpu['L1d cache']}, L2 {cpu['L2 cache']}, L3 {cpu['L3 cache']}",
        "system": f"{platform.system()} {platform.machine()}",
    }


_import = """
import time, numpy
start = time.perf_counter()
import fastpe
print(1e3 * (time.perf_counter() - start))
"""

# The growth of the largest resident set during a call, and without the pages of files among it: these are code, which
# processes share, and of which the system maps many at once. Linux resets the largest set on request.
_memory = """
import numpy as np, fastpe
def mib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024
x, out = (np.ones((32, 512, 1024), np.float32) for _ in range(2))
ids, table = np.arange(32 * 512).reshape(32, 512), np.ones((32 * 512, 1024), np.float32)
encoder, rope = fastpe.PositionalEncoding(1024, max_len=0), fastpe.RotaryEmbedding(1024, interleaved=False, max_len=0)
call = lambda: {call}
open("/proc/self/clear_refs", "w").write("5")
before = mib("VmHWM"), mib("RssFile")
call()
grown = mib("VmHWM") - before[0]
print(grown, grown - (mib("RssFile") - before[1]))
"""
_memory_calls = ["encoder.encode(16384, out=out.reshape(-1, 1024))", "encoder.add_(x)", "rope.rotate_(x, seq_axis=-2)"]
_memory_calls += ["encoder.embed(ids, table, out=out)"]


def _fresh(python: str, repeats: int) -> dict[str, dict[str, float]]:
    """What only fresh processes show: the time of the import, and the memory of a first call beyond its arrays."""
    # Byte code is kept, as pip keeps it: compiling the package anew takes longer than importing it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def medians(program: str, count: int) -> list[float]:
        command = [python, "-c", program]
        runs = [subprocess.run(command, env=environment, capture_output=True, check=True).stdout for _ in range(count)]
        return [statistics.median(values) for values in zip(*(map(float, run.split()) for run in runs), strict=True)]

    found = {"import fastpe, beyond NumPy": {"ms": medians(_import, 7 * repeats)[0]}}
    if sys.platform == "linux":
        for call in _memory_calls:
            total, without_code = medians(_memory.format(call=call), repeats)
            found[f"memory of a first {call}, beyond its arrays"] = {"MiB": total, "MiB without code": without_code}
    return found


def progress(text: str) -> None:
    """Show what is measured now, and nothing at the end."""
    print(f"\r{text}".ljust(120) + ("" if text else "\r"), end="", file=sys.stderr, flush=True)


def measure(python: str, effort: Effort, *, processes: int, is_record: bool = False, only: str = "") -> Record:
    """Measure the fastpe that this Python has, in several processes for each setting, one after the other."""
    others = Others()
    with worker(python) as ask:
        described = ask(do="describe")
    if is_record and (missing := {"torch", "onnxruntime"} - {*described["versions"]}):
        sys.exit(f"record: {python} has no {' and no '.join(sorted(missing))}")
    config, names = described["config"], [name for name in described["groups"] if only in name]
    chosen = [s for s in settings(config) if is_record or s.instruction_set == config["instruction_set"]]
    found: dict[tuple[Setting, str], list[dict[str, Measurement]]] = collections.defaultdict(list)
    for number in range(processes):
        for setting in chosen:
            with worker(python, setting) as ask:
                for name in names:
                    progress(f"process {number + 1} of {processes} with {setting}: {name}")
                    reply = ask(do="measure", case=name, effort=dataclasses.asdict(effort))
                    found[setting, name].append({key: Measurement(**values) for key, values in reply.items()})
    fresh = _fresh(python, processes) if not only else {}
    progress("")
    compiled = f"{config['version']} ({config['compiler']}, {'with' if config['openmp'] else 'without'} OpenMP)"
    return Record(
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        machine=_machine(),
        versions={"fastpe": compiled, **described["versions"]},
        processes=processes,
        others_share=others.share(),
        settings={str(s): {name: figures(found[s, name]) for name in names} for s in chosen},
        fresh=fresh,
    )
