# SPDX-License-Identifier: BSD-3-Clause
"""python fork_scenarios.py name [argument]: one process tree that must end with exit code 0, and not hang."""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import fastpe

FORKS = 6
ROWS, D_MODEL = 2048, 512  # 4 MB: worth several threads


def is_right(num_threads: int = 2) -> bool:
    """Whether add_, encode and rotate_, with several threads, give what one thread gives."""
    import fastpe

    expected = fastpe.encode(ROWS, D_MODEL, num_threads=1)
    x = np.ones((ROWS, D_MODEL), np.float32)
    fastpe.add_(x, num_threads=num_threads)
    rope = fastpe.RotaryEmbedding(D_MODEL, interleaved=False, max_len=ROWS)
    rotated = rope.rotate(x, num_threads=1, seq_axis=-2)
    return bool(
        (x == expected + 1).all()
        and (fastpe.encode(ROWS, D_MODEL, num_threads=num_threads) == expected).all()
        and (rope.rotate_(x, num_threads=num_threads, seq_axis=-2) == rotated).all()
    )


def in_child(body: Callable[[], bool]) -> None:
    """Run `body` in a forked child."""
    child = os.fork()
    if child == 0:
        os._exit(0 if body() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def fork() -> None:
    """The parent used threads; children and grandchildren use them too."""
    assert is_right()

    def child() -> bool:
        in_child(is_right)
        return is_right()

    for _ in range(FORKS):
        in_child(child)
    assert is_right()


def fork_from_thread() -> None:
    """A thread other than the main one used threads, and forks."""

    def body() -> None:
        assert is_right()
        for _ in range(FORKS):
            in_child(is_right)

    with ThreadPoolExecutor(1) as executor:
        executor.submit(body).result()
    in_child(is_right)


def fork_during_calls() -> None:
    """Other threads are in the midst of calls at the moment of the fork."""
    # Imported here: a fork during an import leaves the import locked in the child, whatever is imported.
    assert is_right()
    stop = threading.Event()
    wrong: list[int] = []

    def call() -> None:
        while not stop.is_set():
            if not is_right():
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3 * FORKS):
        in_child(is_right)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def fork_during_first_calls() -> None:
    """Other threads make encoders, which calls of functions look up, at the moment of the fork."""
    import fastpe

    assert is_right()
    stop = threading.Event()

    def call(thread: int) -> None:
        for base in itertools.count(2 + thread, 4):
            fastpe.encode(4, 64, base=base)
            if stop.is_set():
                return

    threads = [threading.Thread(target=call, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for base in range(3 * FORKS):
        in_child(lambda base=base: fastpe.encode(4, 64, base=1000.5 + base)[0, 1] == 1)  # type: ignore[misc]
    stop.set()
    for thread in threads:
        thread.join()


def fork_while_rows_are_kept() -> None:
    """Another thread fills the rows that the child's calls would read."""
    import fastpe

    rows = np.array([0, 49_999])
    wrong = []
    for attempt in range(3 * FORKS):
        rope = fastpe.RotaryEmbedding(64, interleaved=False, max_len=50_000)
        expected = fastpe.RotaryEmbedding(64, interleaved=False).tables(rows)[0]
        thread = threading.Thread(target=rope.tables, args=(rows,))
        thread.start()
        time.sleep(0.0001 * attempt)

        def child(rope: fastpe.RotaryEmbedding = rope, expected: npt.NDArray[np.float32] = expected) -> bool:
            x = np.repeat(np.array([[1, 0]], np.float32), 32, axis=1).repeat(2, axis=0)
            return bool((rope.rotate_(x, positions=rows, seq_axis=-2)[:, :32] == expected).all())

        in_child(child)
        thread.join()
        if not child():
            wrong.append(attempt)
    assert not wrong


def work(_: int) -> bool:
    """What a worker of a pool does."""
    return is_right()


def pool(method: str) -> None:
    """A multiprocessing pool, started by `method` after the parent used threads."""
    assert is_right()
    with multiprocessing.get_context(method).Pool(3) as workers:
        assert all(workers.map(work, range(12)))
    assert is_right()


def work_of_torch() -> None:
    """Parallel regions of torch."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(2)
    tensor = torch.ones(2000, 2000)
    for _ in range(3):
        tensor = tensor * 1.5
    assert bool((tensor == 1.5**3).all())


def work_of_sklearn() -> None:
    """Parallel regions of scikit-learn, whose wheels bring an OpenMP run-time of their own."""
    cluster = importlib.import_module("sklearn.cluster")
    points = np.random.default_rng(0).standard_normal((5000, 16))
    assert len(cluster.KMeans(4, n_init=1, random_state=0).fit(points).cluster_centers_) == 4


def others(packages: str, order: str) -> None:
    """Other packages run parallel regions, maybe of the same OpenMP run-time, before fastpe's first call or after it."""
    works = [globals()[f"work_of_{package}"] for package in packages.split("+")]
    if order == "fastpe-first":
        assert is_right()
    for work_of_package in works:
        work_of_package()
    if order == "fastpe-last":
        assert is_right()
    import fastpe  # noqa: F401  # the third order: it is called in the children first

    for _ in range(FORKS):
        in_child(is_right)
    assert is_right()
    for work_of_package in works:
        work_of_package()
    assert is_right()
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "/" in line}
    run_times = [file for file in sorted(files) if os.path.basename(file).startswith(("libgomp", "libomp"))]
    print(f"OpenMP run-time libraries: {', '.join(run_times)}")


def main() -> None:
    """Run the scenario named on the command line."""
    started = time.monotonic()
    globals()[sys.argv[1]](*sys.argv[2:])
    print(f"{' '.join(sys.argv[1:])}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
