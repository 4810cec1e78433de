# SPDX-License-Identifier: BSD-3-Clause
"""One run of the command line: its streams, its signals, and its exit code."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from fastpe._arguments import nearest
from fastpe._cli.app import app
from fastpe._cli.errors import CommandError, MissingLibrary, WrongUsage, printable, with_options

# Click's own class has no public name in typer.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class _Terminated(BaseException):
    """Another process wants this one to end."""


def run(arguments: Sequence[str] | None) -> int:
    """Run the application; every expected failure becomes one line and an exit code."""
    if sys.stderr is None:
        # If it is closed, print() would write to standard output, which may be data.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        # A descriptor that can only be read makes a command that prints something fail, instead of losing it.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    try:
        with _termination_as_exception(), _warnings_in_one_line():
            result = app(args=None if arguments is None else list(arguments), prog_name="fastpe", standalone_mode=False)
            # A failure to write what is still in the buffer is reported here: later it would have no exit code of ours.
            sys.stdout.flush()
    except _UsageError as error:
        return _fail(_usage_message(error, sys.argv[1:] if arguments is None else arguments), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("fastpe: interrupted", 130)
    except _Terminated as end:
        return _fail("fastpe: terminated", 128 + int(end.args[0]))
    except (BrokenPipeError, SystemExit) as error:
        # Typer and rich answer with SystemExit to a reader that left.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        # The reader has what it wants; there is no reason to say anything.
        _discard_output()
        return 141
    except MemoryError as error:
        return _fail(f"fastpe: not enough memory: {error}" if str(error) else "fastpe: not enough memory", 1)
    except OSError as error:
        _discard_output()
        reason = error.strerror or with_options(error)
        return _fail(f"fastpe: {error.filename}: {reason}" if error.filename else f"fastpe: {reason}", 1)
    except (MissingLibrary, WrongUsage) as error:
        return _fail(f"fastpe: {error}", 2)
    except CommandError as error:
        return _fail(f"fastpe: {error}", 1)
    except (ValueError, TypeError) as error:
        return _fail(f"fastpe: {with_options(error)}", 1)
    if result == 130:
        # Typer's own answer to Ctrl-C.
        return _fail("fastpe: interrupted", 130)
    return result if isinstance(result, int) else 0


def _usage_message(error: Exception, arguments: Sequence[str]) -> str:
    """What typer found wrong, with a suggestion where there is one."""
    commands = {command.name: command for command in typer.main.get_group(app).commands.values()}
    context = getattr(error, "ctx", None)
    # Not every error of typer says where it happened.
    name = context.info_name if context and context.parent else next(iter(arguments), None)
    command = f"fastpe {name}" if name in commands else "fastpe"
    message = error.format_message().rstrip(".").replace(". Did you mean", "; did you mean")  # type: ignore[attr-defined]
    if (option := getattr(error, "option_name", None)) and message.startswith("No such option"):
        message = f"No such option: {option}{_option_hint(option, name, commands)}"
    elif message.startswith("No such command") and os.path.exists(arguments[0]):
        message = f"No such command '{arguments[0]}'; did you mean fastpe add {shlex.quote(arguments[0])}?"
    separator = " See" if message.endswith("?") else "; see"
    return f"{command}: {message}{separator} {command} --help"


def _option_hint(option: str, name: str | None, commands: Mapping[str | None, Any]) -> str:
    """The option of a command that is probably meant, or the commands that have this one."""
    options = {
        command: {
            each.removeprefix("--"): each
            for parameter in commands[command].params
            for each in parameter.opts
            if each.startswith("-")
        }
        for command in commands
    }
    if name not in commands:
        having = ", ".join(str(command) for command, known in options.items() if option.removeprefix("--") in known)
        return f"; it is an option of {having}, and stands behind the command" if having else ""
    word = option.lstrip("-")
    meant = nearest(word, options[name])
    return f"; did you mean '{options[name][meant]}'?" if meant else ""


def _discard_output() -> None:
    """Drop what standard output holds and cannot write: the interpreter would try again, and complain, when it ends."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show a library's warnings as this program's own, since they may hold names of files."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(printable(f"fastpe: warning: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    # The exception lets unfinished files be removed. Only the main thread can set a handler.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        raise _Terminated(number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        # What nohup has switched off stays off.
        if previous[number] == signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _fail(message: str, exit_code: int) -> int:
    print(printable(message), file=sys.stderr)
    return exit_code
