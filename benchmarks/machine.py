# SPDX-License-Identifier: BSD-3-Clause
"""What a figure was measured on, and how quiet it was."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
import shutil
import subprocess

import fastpe

_busy_load = 0.5
_cpus = pathlib.Path("/sys/devices/system/cpu")


def _lscpu() -> dict[str, str]:
    if shutil.which("lscpu") is None:
        return {}
    environment = {**os.environ, "LC_ALL": "C"}
    output = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env=environment).stdout
    pairs = (line.split(":", 1) for line in output.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def caches() -> dict[str, int]:
    """Bytes of one processor's caches, as Linux reports them; they may be shared, with other guests too."""
    found = {}
    for index in sorted(_cpus.glob("cpu0/cache/index*")):
        level, kind, size = ((index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = int(size.removesuffix("K")) << 10
    return found


def is_in_cache(size: int) -> bool:
    """Whether an array of so many bytes stays in the last level.

    A large one is shared with other guests, so that nobody has more than this of it.
    """
    most = 64 << 20
    return size < min(max(caches().values(), default=32 << 20), most)


def is_intel() -> bool:
    return _lscpu().get("Vendor ID") == "GenuineIntel"


def load_warning() -> str | None:
    """A sentence when other programs are using the processors."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < _busy_load:
        return None
    return f"the load average was {load:.1f} before the run: other programs were using the processors"


class Others:
    """The processor time that other programs use meanwhile, where Linux says it."""

    def __init__(self) -> None:
        self._begin = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        """Seconds: of all processors together but idle, and of this process and its children that have ended."""
        try:
            first_line = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        except OSError:
            return 0.0, 0.0
        user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = map(int, first_line.split()[1:9])
        busy = (user + nice + system + interrupt + soft_interrupt + steal) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        return busy, own.user + own.system + own.children_user + own.children_system

    def seconds(self) -> float:
        busy, own = (now - begin for now, begin in zip(self._now(), self._begin, strict=True))
        return max(0.0, busy - own)


def describe() -> dict[str, str]:
    from benchmarks import peers

    cpu = _lscpu()
    config = fastpe.show_config()
    description = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processor": cpu.get("Model name", platform.processor() or platform.machine()),
        "family, model, stepping": ", ".join(cpu.get(name, "?") for name in ("CPU family", "Model", "Stepping")),
        "processors": f"{os.cpu_count()}"
        + (f", virtual ({cpu['Hypervisor vendor']})" if "Hypervisor vendor" in cpu else ""),
        "caches": ", ".join(f"{name} {size >> 10} KiB" for name, size in caches().items()) or "unknown",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "fastpe": f"{config['version']}, {config['compiler']}, {'with' if config['openmp'] else 'without'} OpenMP",
        "beside it": ", ".join(f"{name} {version}" for name, version in peers.versions().items()),
    }
    if config["environment"]:
        description["environment"] = ", ".join(f"{name}={value}" for name, value in config["environment"].items())
    return description
