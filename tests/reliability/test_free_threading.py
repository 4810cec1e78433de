# SPDX-License-Identifier: BSD-3-Clause
"""Free-threaded Python, and arguments that others change while a call reads them: an error or a result.

Left out are arrays that another thread reshapes or resizes meanwhile: NumPy's own calls crash then, and fastpe's too.
"""

from __future__ import annotations

import signal
import sysconfig
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.timed

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


@needs_free_threading
def test_lists_whose_items_others_replace(run_script: Callable[..., str]) -> None:
    run_script("""
        import threading
        import numpy as np, fastpe
        rope, made = fastpe.RotaryEmbedding(8, interleaved=True), lambda: np.empty((4, 4), np.float32)
        outputs, axes, is_over = [made(), made()], [0, 1, 0, 1], threading.Event()
        def replace():
            while not is_over.is_set():
                outputs[0], outputs[1], axes[0] = made(), made(), int("0")
        threads = [threading.Thread(target=replace) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(30_000):
            assert rope.tables(4, form="halves", out=outputs) is outputs
        for _ in range(1_000):
            fastpe.RotaryEmbedding(8, interleaved=True, frequency_axes=axes)
        is_over.set()
    """)


# Python objects that another thread changes during calls: how they are made, what it does with them, the call, and whether
# its result is right.
CHANGING = {
    "list-of-outputs": (
        "out = [np.empty((4, 2), np.float32) for _ in range(2)]",
        "out[0] = np.empty((4, 2), np.float32); out.append(0); del out[2:]; out[1] = out[0].copy()",
        "rope.tables(4, form='halves', out=out)",
        "result is out",  # with arrays of later
    ),
    "list-of-positions": (
        "positions = [*range(50)]",
        "positions[:] = [0, 1000.5] * 30; positions[:] = range(50)",
        "encoding.encode(positions)",
        "np.isfinite(result).all() and len(result) in (50, 60)",
    ),
    "list-of-frequencies": (
        "frequencies = [0.5, 0.25]",
        "frequencies[:] = [0.125] * 40; frequencies[:] = [0.5, 0.25]",
        "fastpe.RotaryEmbedding(4, interleaved=True, frequencies=frequencies).frequencies",
        "result.tolist() == [0.5, 0.25]",
    ),
    "scaling": (
        "scaling = {'rope_type': 'linear', 'factor': 2.0}",
        "scaling['factor'] = 4.0; scaling.update(letters); scaling.clear(); scaling.update(linear)",
        "fastpe.RotaryEmbedding(4, interleaved=True, scaling=scaling).frequencies[0]",
        "result in (1.0, 0.5, 0.25)",
    ),
    "config": (
        "config = dict(llama); known = read(llama), read({**llama, 'rope_theta': 1e6})",
        "config['rope_theta'] = 1e6; config.update(letters); [config.pop(key) for key in letters]; config.update(llama)",
        "read(config)",
        "result in known",
    ),
}


@needs_free_threading
@pytest.mark.parametrize("name", CHANGING)
def test_object_that_another_thread_changes(name: str, run_script: Callable[..., str]) -> None:
    script = """
        import threading, time
        import numpy as np, fastpe
        rope, encoding = fastpe.RotaryEmbedding(4, interleaved=False), fastpe.PositionalEncoding(4)
        read, letters = fastpe.RotaryEmbedding.from_config, dict.fromkeys("abcdefghij")
        linear = {"rope_type": "linear", "factor": 2.0}
        llama = {"model_type": "llama", "head_dim": 64, "rope_theta": 1e4}
        SETUP
        def change():
            while not stop:
                CHANGE
        changing, stop, right, refused = threading.Thread(target=change), False, 0, 0
        changing.start()
        try:
            end = time.monotonic() + 3
            while time.monotonic() < end:
                try:
                    result = CALL
                except (TypeError, ValueError, KeyError, IndexError, RuntimeError):
                    refused += 1
                    continue
                assert IS_RIGHT, result
                right += 1
        finally:
            stop = True
        assert right > 0, refused
    """
    for word, text in zip(("SETUP", "CHANGE", "CALL", "IS_RIGHT"), CHANGING[name], strict=True):
        script = script.replace(word, text)
    run_script(script)


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
        "spatial.rotate_(x, positions=changed, num_threads=1, seq_axis=-2)",
    ),
    "positions-of-given-cosines": (
        "np.arange(rows)[::-1] % 16",
        "fastpe.rotate_by_tables_(x, positions=changed, cos=table[:, :4], sin=table[:, 4:], interleaved=True, num_threads=1, seq_axis=-2)",
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
        spatial = fastpe.RotaryEmbedding(8, interleaved=False, frequency_axes=[0, 1, 0, 1], max_len=16)
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
                encoding.encode(8, offset=np.int32(3), dtype=ml_dtypes.bfloat16),
                encoding.encode(8, offset=[3], dtype="float64"),
                encoding.add_(np.zeros((8, 64), ml_dtypes.bfloat16), num_threads=2),
                encoding.embed([3, 1], np.ones((4, 64), np.float32)),
                fastpe.encode(8, 64, convention="fairseq"),
                fastpe.timestep_embedding([0.5, 2.0], 64, flip_sin_to_cos=True, downscale_freq_shift=0),
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
