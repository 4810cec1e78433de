# SPDX-License-Identifier: BSD-3-Clause
"""Many callers: right results, few threads, the processors this process may use, and no spinning afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpe

pytestmark = pytest.mark.timed

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
needs_processors = pytest.mark.skipif(PROCESSORS == 1, reason="one processor: no call uses more threads")
needs_openmp = pytest.mark.skipif(
    not fastpe.show_config("dicts")["openmp"], reason="built without OpenMP: one thread always"
)


@pytest.mark.parametrize("shared", [True, False], ids=["one-encoder", "many-encoders"])
def test_sixteen_callers(shared: bool) -> None:
    callers, rows, d_model = 16, 1024, 512
    encoding = fastpe.PositionalEncoding(d_model, max_len=64)
    rope = fastpe.RotaryEmbedding(d_model, interleaved=True, max_len=rows)
    expected = fastpe.encode(rows, d_model, num_threads=1)
    unkept = fastpe.RotaryEmbedding(d_model, interleaved=True)
    rotated = unkept.rotate(np.ones((rows, d_model), np.float32), num_threads=1, seq_axis=-2)
    start = threading.Barrier(callers)
    wrong: list[int] = []

    def call(caller: int) -> None:
        own = encoding if shared else fastpe.PositionalEncoding(d_model, max_len=64)
        own_rope = rope if shared else fastpe.RotaryEmbedding(d_model, interleaved=True, max_len=rows)
        x = np.ones((rows, d_model), np.float32)
        start.wait()
        for _ in range(4):
            x[...] = 1
            own.add_(x, num_threads=2)
            short = own.encode([3, 5], dtype=np.float16)
            if not ((x == expected + 1).all() and (short == expected[[3, 5]].astype(np.float16)).all()):
                wrong.append(caller)
            x[...] = 1
            own_rope.rotate_(x, num_threads=2, seq_axis=-2)
            if not (x == rotated).all():
                wrong.append(caller)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FRACTIONS = np.arange(60_000) + 0.5
ROPE = fastpe.RotaryEmbedding(256, interleaved=True)
LONG_CALLS: dict[str, Callable[[Any], object]] = {
    "encode": lambda out: fastpe.encode(FRACTIONS, 256, out=out, num_threads=1),
    "add_": lambda out: fastpe.add_(out, num_threads=1),
    "embed": lambda out: fastpe.embed(np.zeros(60_000, int), np.ones((3, 256), np.float32), out=out, num_threads=1),
    "rotate_": lambda out: ROPE.rotate_(out, num_threads=1, seq_axis=-2),
    "tables": lambda out: ROPE.tables(FRACTIONS, form="cos_sin", out=out, num_threads=1),
}


def runs_beside(call: Callable[[Any], object]) -> bool:
    """Whether another thread runs in the midst of the call. Python itself gives no thread its turn meanwhile."""
    out = np.ones((60_000, 256), np.float32)
    times: list[float] = []
    stop, interval = threading.Event(), sys.getswitchinterval()

    def count() -> None:
        while not stop.is_set():
            times.append(time.monotonic())
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    sys.setswitchinterval(1000)
    try:
        for _ in range(50):
            time.sleep(0.001)
            times.clear()
            begin = time.monotonic()
            call(out)
            end = time.monotonic()
            margin = (end - begin) / 3
            if any(begin + margin < each < end - margin for each in times[:]):
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()


@pytest.mark.parametrize("name", LONG_CALLS)
def test_other_threads_run_during_a_call(name: str) -> None:
    assert runs_beside(LONG_CALLS[name])


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="this Python has no such lock")
def test_other_threads_do_not_run_while_the_lock_is_held() -> None:
    numbers = [*range(200_000)]
    assert not runs_beside(lambda _: max(numbers))


@needs_proc
@needs_openmp
@needs_processors
def test_callers_share_few_threads(run_script: Callable[..., str]) -> None:
    # 32 callers that ask for 8 threads each: at most 4 of them own a team.
    most = run_script("""
        import os, threading
        import numpy as np, fastpe
        callers, counts = 32, []
        before = len(os.listdir("/proc/self/task"))
        meet = threading.Barrier(callers)
        def call():
            x = np.zeros((2048, 512), np.float32)
            meet.wait()
            for _ in range(3):
                fastpe.add_(x, num_threads=8)
                counts.append(len(os.listdir("/proc/self/task")))
            meet.wait()  # a thread that ends takes its team along
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(max(counts) - before - callers)
    """)
    assert 0 < int(most) <= 4 * (min(8, PROCESSORS) - 1)


@needs_proc
@needs_openmp
@needs_processors
@pytest.mark.parametrize("environment", [{}, {"OMP_NUM_THREADS": "4096"}], ids=str)
def test_a_team_has_a_processor_for_each_thread(environment: dict[str, str], run_script: Callable[..., str]) -> None:
    during, after, right = run_script(
        """
        import os, sys, threading
        import numpy as np, fastpe
        expected = fastpe.encode(25_000, 1024, num_threads=1)
        out = np.zeros_like(expected)
        def threads(): return len(os.listdir("/proc/self/task"))
        most, stop = 0, False
        def count():
            global most
            while not stop: most = max(most, threads() - before)
        before = threads() + 1
        counter = threading.Thread(target=count)
        counter.start()
        fastpe.encode(25_000, 1024, out=out, **({} if len(sys.argv) > 1 else {"num_threads": 4096}))
        after = threads() - before
        stop = True
        counter.join()
        print(most, after, np.array_equal(out, expected))
        """,
        *environment,
        **environment,
    ).split()
    assert right == "True"
    assert int(during) <= PROCESSORS - 1
    assert int(after) == PROCESSORS - 1


# Both leave the call its one thread: in GNU OpenMP, a thread that cannot be started ends the process.
LIMITS = {
    "processes": """
        if os.getuid() == 0: os.setuid(65534)  # root has no limit
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        """,
    "memory": """
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 2**22  # less than a thread's stack
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        """,
}


@needs_proc
@needs_openmp
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.usefixtures("another_user")
def test_a_call_that_may_start_no_thread_uses_its_own(limit: str, run_script: Callable[..., str]) -> None:
    script = """
        import os, resource
        import numpy as np, fastpe
        expected = fastpe.encode(4096, 512, num_threads=1)
        out = np.zeros_like(expected)
        same = np.zeros(out.shape, bool)  # made before there is no memory left for it
        def threads(): return len(os.listdir("/proc/self/task"))
        before = threads()
        {limit}
        for _ in range(100): fastpe.encode(4096, 512, out=out, num_threads=64)
        print(threads() - before, np.equal(out, expected, out=same).all())
        """
    assert run_script(textwrap.dedent(script).format(limit=textwrap.dedent(LIMITS[limit]))).split() == ["0", "True"]


@needs_proc
@needs_openmp
def test_idle_threads_do_not_spin(run_script: Callable[..., str]) -> None:
    seconds = run_script("""
        import time
        import numpy as np, fastpe
        x = np.zeros((4096, 512), np.float32)
        fastpe.add_(x, num_threads=2)
        before = time.process_time()
        time.sleep(0.5)
        print(time.process_time() - before)
    """)
    assert float(seconds) < 0.05


COUNT = "import fastpe; print(fastpe.show_config('dicts')['threads'])"


@needs_openmp
@pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset is not installed")
def test_affinity_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FASTPE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    processor = min(os.sched_getaffinity(0))
    command = ["taskset", "--cpu-list", str(processor), sys.executable, "-c", textwrap.dedent(COUNT)]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip() == "1"


# fopen, whose control groups are those of a directory.
FOPEN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
FILE* fopen64(const char* path, const char* mode) {
  FILE* (*original)(const char*, const char*) = dlsym(RTLD_NEXT, "fopen64");
  char there[4096];
  int is_of_groups = !strncmp(path, "/sys/fs/cgroup", 14) || !strcmp(path, "/proc/self/cgroup");
  snprintf(there, sizeof there, "%s%s", is_of_groups ? getenv("TEST_GROUPS") : "", path);
  return original(there, mode);
}
FILE* fopen(const char* path, const char* mode) { return fopen64(path, mode); }
"""
OF_VERSION_2, OF_VERSION_1 = "0::/app/worker", "7:memory:/other\n4:cpu,cpuacct:/app"
MANY = 2**16
QUOTAS: list[tuple[str, dict[str, str], int]] = [
    (OF_VERSION_2, {"cpu.max": "max 100000", "app/worker/cpu.max": "max 100000"}, MANY),
    (OF_VERSION_2, {"cpu.max": "500000 100000", "app/worker/cpu.max": "100000 100000"}, 1),
    (OF_VERSION_2, {"cpu.max": "1000 100000", "app/worker/cpu.max": "110000 100000"}, 1),
    (OF_VERSION_2, {"app/worker/cpu.max": "100001 100000"}, 2),
    (OF_VERSION_1, {"cpu/app/cpu.cfs_quota_us": "40000", "cpu/app/cpu.cfs_period_us": "50000"}, 1),
    (OF_VERSION_1, {"cpu/app/cpu.cfs_quota_us": "-1", "cpu/app/cpu.cfs_period_us": "100000"}, MANY),
    (OF_VERSION_1, {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
]


@pytest.fixture(scope="module")
def fopen_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("fopen") / "fopen.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=FOPEN, check=True, text=True)
    return str(library)


@needs_openmp
@needs_processors
@pytest.mark.skipif(
    sys.platform != "linux" or "LD_PRELOAD" in os.environ or not shutil.which("cc"),
    reason="replaces fopen by LD_PRELOAD",
)
@pytest.mark.parametrize(
    ("groups", "files", "threads"),
    [pytest.param(*each, marks=[] if i in (1, 4) else pytest.mark.slow) for i, each in enumerate(QUOTAS)],
)
def test_quotas_of_control_groups_are_respected(
    groups: str, files: dict[str, str], threads: int, fopen_elsewhere: str, tmp_path: Path
) -> None:
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": files[name] for name in files}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    environment |= {"LD_PRELOAD": fopen_elsewhere, "TEST_GROUPS": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True, env=environment)
    assert int(found.stdout) == min(threads, PROCESSORS)
