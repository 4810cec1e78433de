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


# An array and the call that takes it as `changed`; what is written into it later has no row in the table.
CALLS = {
    "positions": ("np.arange(rows)[::-1] % 16", "encoding.add_(x, positions=changed, num_threads=1)"),
    "positions-as-floats": ("np.arange(rows)[::-1] % 16.0", "encoding.add_(x, positions=changed, num_threads=1)"),
    "positions-of-a-learned-table": (
        "np.arange(rows)[::-1] % 16",
        "encoding.add_(x, positions=changed, table=table, num_threads=1)",
    ),
    "offset": ("np.arange(rows) % 16", "encoding.add_(x[:, None], offset=changed, table=table, num_threads=1)"),
    "ids": ("np.arange(rows) % 16", "encoding.embed(changed, table, num_threads=1, out=x)"),
    "cu_seqlens": ("np.arange(rows + 1)", "encoding.add_(x, cu_seqlens=changed, num_threads=1)"),
    "lengths": (
        "np.full(rows // 16, 3)",
        "encoding.add_(x.reshape(-1, 16, 8), lengths=changed, table=table[:3], positions=np.arange(16), num_threads=1)",
    ),
    "coordinates": (
        "np.arange(2 * rows).reshape(rows, 2) % 16",
        "spatial.rotate_(x, positions=changed, num_threads=1)",
    ),
    "positions-of-given-cosines": (
        "np.arange(rows)[::-1] % 16",
        "fastpe.rotate_(x, positions=changed, cos=table[:, :4], sin=table[:, 4:], interleaved=True, num_threads=1)",
    ),
}


@needs_interval_timer
@pytest.mark.parametrize(
    ("name", "far"),
    [
        pytest.param(name, far, marks=[] if far == 2**40 and i % 4 == 0 else pytest.mark.slow)
        for i, name in enumerate(CALLS)
        for far in (2**40, -(2**40), -1, 16)
    ],
)
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
        encoding, memory = fastpe.PositionalEncoding(8, max_len=16), np.full((18, 8), np.inf, np.float32)
        table = memory[1:17]
        table[...] = 1
        spatial = fastpe.RotaryEmbedding(8, interleaved=False, axes=[0, 1, 0, 1], max_len=16)
        rows, when = 2**19, "after"
        while when == "after":
            rows, is_running = 2 * rows, False
            assert rows <= 2**25, "no call was long enough for a signal handler to run within"
            x = np.zeros((rows, 8), np.float32)
            changed = CHANGED
            CALL  # whatever is made on first use
            when, is_running = "", True
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
            try:
                CALL
            except (IndexError, ValueError):
                when = when or "after"  # the handler came before the checks
            is_running = False
            while not when:
                signal.pause()
        assert np.isfinite(x).all(), "memory beside the table was read"
        print(when)
    """
    changed, call = CALLS[name]
    script = script.replace("CHANGED", changed).replace("CALL", call).replace("FAR", str(far))
    assert run_script(script, timeout_seconds=120) == "within\n"


def test_sixteen_first_calls_at_once(run_script: Callable[..., str]) -> None:
    pytest.importorskip("ml_dtypes")
    # Whatever is made on first use is made by all threads at the same time.
    run_script("""
        import sys, threading
        import ml_dtypes, numpy as np, fastpe
        sys.setswitchinterval(1e-6)
        encoding, start, results = fastpe.PositionalEncoding(64, max_len=32), threading.Barrier(16), []
        rope = fastpe.RotaryEmbedding(64, interleaved=False, attention_factor=1.5, max_len=32)
        def call():
            start.wait()
            results.append([
                encoding.encode(np.int64(8), offset=np.int32(3), dtype=ml_dtypes.bfloat16),
                encoding.encode(8, offset=[3], dtype="float64"),
                encoding.add_(np.zeros((8, 64), ml_dtypes.bfloat16), num_threads=2),
                encoding.embed([3, 1], np.ones((4, 64), np.float32)),
                fastpe.encode(8, 64, convention="fairseq"),
                fastpe.timestep_embedding([0.5, 2.0], 64),
                rope.rotate(np.ones((8, 64), np.float32)),
                rope.rotate(np.ones((8, 64), np.float32), inverse=True),
                rope.shift_(np.ones((8, 64), ml_dtypes.bfloat16), by=-3),
                rope.tables(8, form="cos_sin", dtype="float64"),
            ])
        threads = [threading.Thread(target=call) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(results) == 16
        for other in results[1:]:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(results[0], other))
    """)


def test_arguments_changed_by_other_threads(run_script: Callable[..., str]) -> None:
    # Twelve callers share their arguments with four threads that change them: flags, elements, lists. Every call ends in
    # a result or in a documented error, and an encoder is as good afterwards as before.
    counts = run_script("""
        import threading
        import numpy as np, fastpe
        encoding, start = fastpe.PositionalEncoding(32, max_len=64), threading.Barrier(16)
        rope = fastpe.RotaryEmbedding(32, interleaved=True, max_len=64)
        spatial = fastpe.RotaryEmbedding(32, interleaved=True, axes=[0, 1] * 8, max_len=64)
        expected = encoding.encode(64)
        table = np.ones((64, 32), np.float32)
        ids, positions, starts = np.zeros(200, np.int64), np.arange(200) % 64, np.arange(0, 201, 10)
        mask, lengths, offset = np.ones((4, 50), bool), [50] * 4, [0] * 4
        shared = np.zeros((4, 50, 32), np.float32)
        finished, results, errors, wrong = threading.Event(), [], [], []

        def call(caller):
            x, packed = np.zeros((4, 50, 32), np.float32), np.zeros((200, 32), np.float32)
            width = 2 * (caller + 1)
            calls = [
                lambda: encoding.embed(ids, table),
                lambda: encoding.add_(packed, positions=positions, table=table),
                lambda: encoding.add_(packed, cu_seqlens=starts),
                lambda: encoding.add_(x, mask=mask),
                lambda: encoding.add_(x, lengths=lengths),
                lambda: encoding.add_(x, offset=offset),
                lambda: encoding.add(x, out=shared),
                lambda: encoding.add_(shared),
                lambda: rope.rotate_(x, offset=offset, lengths=lengths),
                lambda: rope.shift_(packed, by=positions),
                lambda: spatial.rotate_(packed, positions=positions.repeat(2).reshape(200, 2)[:, ::-1]),
                lambda: rope.tables(positions, form="pairs"),
                lambda: fastpe.rotate_(packed, positions=positions, cos=table[:, :16], sin=table[:, 16:],
                                       interleaved=False),
                lambda: fastpe.encode(4, width, base=100.0 + width),
                lambda: fastpe.add_(x[..., :width], freq_scale=1.0 + width),
            ]
            start.wait()
            for turn in range(150):
                try:
                    calls[(turn + caller) % len(calls)]()
                    results.append(1)
                except (ValueError, TypeError, IndexError):
                    errors.append(1)
                except BaseException as error:
                    wrong.append(error)

        def change(what):
            start.wait()
            while not finished.is_set():
                if what == 0:
                    shared.flags.writeable = not shared.flags.writeable
                elif what == 1:
                    for array in (ids, positions, starts):
                        before = array[-1]
                        array[-1] = array[7] = 2**40
                        array[-1], array[7] = before, 0
                elif what == 2:
                    lengths.append(-1); offset.append("x")
                    lengths[0], offset[0] = 2**70, -(2**60)
                    lengths[:], offset[:] = [50] * 4, [0] * 4
                else:
                    mask[1, ::3] ^= True

        callers = [threading.Thread(target=call, args=(n,)) for n in range(12)]
        changers = [threading.Thread(target=change, args=(n,)) for n in range(4)]
        for thread in callers + changers: thread.start()
        for thread in callers: thread.join()
        finished.set()
        for thread in changers: thread.join()
        assert not wrong, wrong
        assert (encoding.encode(64) == expected).all()
        print(len(results), len(errors))
    """)
    results, errors = (int(count) for count in counts.split())
    assert results > 0
    assert results + errors == 12 * 150
