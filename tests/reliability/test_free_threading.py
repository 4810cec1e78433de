# SPDX-License-Identifier: BSD-3-Clause
"""Free-threaded Python, and arguments that others change while a call reads them: refused or undefined, never a crash."""

from __future__ import annotations

import signal
import sysconfig
from collections.abc import Callable

import pytest

needs_free_threading = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a global interpreter lock"
)
needs_interval_timer = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no interval timer that could interrupt a call"
)


@needs_free_threading
def test_import_leaves_the_gil_off(run_script: Callable[..., str]) -> None:
    # NumPy first: should it turn the GIL on, that is its own affair.
    run_script("""
        import sys, warnings
        warnings.simplefilter("error")
        import numpy
        before = sys._is_gil_enabled()
        import fastpe
        fastpe.add_(numpy.zeros((4, 8), numpy.float32))
        assert not before and not sys._is_gil_enabled()
    """)


# Each makes the array `changed` and `call`; what is written into `changed` later has no row anywhere.
CALLS = {
    "positions": """
        changed = np.arange(rows)[::-1] % 16
        call = lambda: encoding.add_(x, positions=changed, num_threads=1)
    """,
    "positions-of-a-learned-table": """
        changed = np.arange(rows)[::-1] % 16
        call = lambda: encoding.add_(x, positions=changed, table=table, num_threads=1)
    """,
    "positions-as-floats": """
        changed = np.arange(rows)[::-1] % 16.0
        call = lambda: encoding.add_(x, positions=changed, num_threads=1)
    """,
    "offset": """
        changed = np.arange(rows) % 16
        call = lambda: encoding.add_(x[:, None], offset=changed, num_threads=1)
    """,
    "ids": """
        changed = np.arange(rows) % 16
        call = lambda: encoding.embed(changed, table, num_threads=1, out=x)
    """,
    "cu_seqlens": """
        changed = np.arange(rows + 1)
        call = lambda: encoding.add_(x, cu_seqlens=changed, num_threads=1)
    """,
    "lengths": """
        x = x.reshape(-1, 16, 8)
        changed = np.full(len(x), 3)
        call = lambda: encoding.add_(x, lengths=changed, table=table[:3], positions=np.arange(16), num_threads=1)
    """,
}


@needs_interval_timer
@pytest.mark.parametrize("far", [2**40, -(2**40), 2**62, -(2**62)])
@pytest.mark.parametrize("name", CALLS)
def test_argument_changed_after_it_was_checked(name: str, far: int, run_script: Callable[..., str]) -> None:
    # A long call runs signal handlers, here one that changes an argument that the call has checked already. Calls get
    # longer until the handler ran within one.
    script = """
        import signal
        import numpy as np, fastpe
        def change(*_):
            global when
            changed[...] = FAR
            when = "within" if is_running else "after"
        signal.signal(signal.SIGALRM, change)
        encoding, table = fastpe.PositionalEncoding(8, max_len=16), np.ones((16, 8), np.float32)
        rows, when = 2**19, "after"
        while when == "after":
            rows, is_running = 2 * rows, False
            assert rows <= 2**25, "no call was long enough for a signal handler to run within"
            x = np.zeros((rows, 8), np.float32)
            PREPARE
            call()  # whatever is made on first use
            when, is_running = "", True
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
            try:
                call()
            except (IndexError, ValueError):
                when = when or "after"  # the handler came before the checks
            is_running = False
            while not when:
                signal.pause()
        print(when)
    """
    prepare = "".join(f"            {line.strip()}\n" for line in CALLS[name].splitlines()).strip()
    assert run_script(script.replace("PREPARE", prepare).replace("FAR", str(far)), timeout_seconds=120) == "within\n"
