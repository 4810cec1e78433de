# SPDX-License-Identifier: BSD-3-Clause
"""The first import and the first use of names: by several threads, and in an interpreter that is not the main one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.timed

INTERPRETERS = next(
    (name for name in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(name) is not None), None
)
OPTION = "isolated=False" if INTERPRETERS == "_xxsubinterpreters" else "'legacy'"  # as C programs make them


@pytest.mark.skipif(INTERPRETERS is None, reason="this Python has no module that makes interpreters")
@pytest.mark.parametrize("before", ["", "import numpy", "import fastpe"])
@pytest.mark.parametrize("module", ["fastpe", "fastpe._core"])
def test_import_in_a_sub_interpreter_is_an_error(before: str, module: str, run_script: Callable[..., str]) -> None:
    said = run_script(
        f"""
        import {INTERPRETERS} as interpreters
        {before}
        other = interpreters.create({OPTION})
        code = "try: import {module}\\nexcept ImportError as error: print(error)"
        interpreters.run_string(other, code)
        interpreters.destroy(other)  # Python itself may wait for it at its end
        """,
    )
    assert "main interpreter" in said
    assert said.count("\n") == 1


def test_a_name_is_published_when_its_module_is_whole(run_script: Callable[..., str]) -> None:
    # Another thread asks for a name while the module of RotaryLayout is executed.
    run_script("""
        import importlib.machinery, sys, threading, time
        import fastpe
        slow, has_begun = "fastpe." + fastpe._deferred["RotaryLayout"], threading.Event()
        class Finder:
            @staticmethod
            def find_spec(name, path, target=None):
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                if name == slow:
                    execute = spec.loader.exec_module
                    def execute_slowly(module):
                        module.RotaryLayout = "of a module that is not whole"
                        has_begun.set()
                        time.sleep(0.3)
                        execute(module)
                    spec.loader.exec_module = execute_slowly
                return spec
        sys.meta_path.insert(0, Finder)
        first = threading.Thread(target=lambda: fastpe.RotaryLayout)
        first.start()
        has_begun.wait()
        fastpe.alibi_slopes
        assert fastpe.RotaryLayout.__module__ == "fastpe"
        first.join()
    """)
