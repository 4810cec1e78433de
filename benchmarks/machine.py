# SPDX-License-Identifier: BSD-3-Clause
"""What a figure was measured on."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess

import fastpe
from benchmarks import limits, peers


def _lscpu() -> dict[str, str]:
    if shutil.which("lscpu") is None:
        return {}
    environment = {**os.environ, "LC_ALL": "C"}
    output = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env=environment).stdout
    pairs = (line.split(":", 1) for line in output.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def load_warning() -> str | None:
    """A sentence when other programs are using the processors."""
    if not hasattr(os, "getloadavg"):
        return None
    load = os.getloadavg()[0]
    if load < 0.5:
        return None
    return f"load average {load:.1f} before the run: other programs were using the processors, figures are unreliable"


def describe() -> dict[str, str]:
    cpu = _lscpu()
    config = fastpe.show_config()
    caches = ", ".join(f"{name} {cpu[f'{name} cache']}" for name in ("L1d", "L2", "L3") if f"{name} cache" in cpu)
    description = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processor": cpu.get("Model name", platform.processor() or platform.machine()),
        "family, model, stepping": ", ".join(cpu.get(name, "?") for name in ("CPU family", "Model", "Stepping")),
        "processors": f"{os.cpu_count()}"
        + (f", virtual ({cpu['Hypervisor vendor']})" if "Hypervisor vendor" in cpu else ""),
        "caches": caches or "unknown",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "fastpe": f"{config['version']}, {config['compiler']}, {config['instruction_set']} of "
        f"{', '.join(config['available_instruction_sets'])}; {config['threads']} threads, "
        f"{'with' if config['openmp'] else 'without'} OpenMP; bypasses the cache from "
        f"{config['streaming_bytes'] / 2**20:g} MiB",
        "beside it": ", ".join(f"{name} {version}" for name, version in peers.versions().items()),
        "memory limits": "native loops" if limits.has_threads() else "NumPy's (no C compiler with OpenMP found)",
    }
    if config["environment"]:
        description["environment"] = ", ".join(f"{name}={value}" for name, value in config["environment"].items())
    return description
