# SPDX-License-Identifier: BSD-3-Clause
"""One run of the command line: its streams, its signals, and its exit code."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType

import typer

from fastpe._arguments import hint
from fastpe._cli.app import app
from fastpe._cli.messages import CommandError, OptionError, say

# Typer shows no public name of this class.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def run(arguments: Sequence[str] | None) -> int:
    """Run the application; every expected failure becomes one line and an exit code."""
    if sys.stderr is None:  # if it is closed, print() would write to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    logging.getLogger("asyncio").addHandler(logging.NullHandler())  # which tells of callbacks that a stop cut short
    message, code = "", 1
    ended: list[int] = []
    try:
        with _termination_as_interruption(ended), warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
            code = app(args=arguments, prog_name="fastpe", standalone_mode=False) or 0
            if sys.stdout is not None:  # a failure to write the rest would have no exit code of ours later
                sys.stdout.flush()
        if code == 130:  # typer's own answer to Ctrl-C
            raise KeyboardInterrupt
    except (KeyboardInterrupt, typer.Abort):
        message, code = ("terminated", 128 + ended[0]) if ended else ("interrupted", 130)
    except (BrokenPipeError, SystemExit) as error:
        # Typer and rich answer with SystemExit to a reader that left.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        code = 141
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        said = " ".join(error.format_message().split())  # type: ignore[attr-defined]
        text, _, guess = said.replace("Value error, ", "").partition("Did you mean ")
        remedy = f"did you mean {guess}" if guess else f"see {context.command_path if context else 'fastpe'} --help"
        text = text.partition(" (Possible options")[0].rstrip(". ")
        if extra := re.match(r"Got unexpected extra argument\S* \((.*)\)", text):
            text, remedy = (
                f"there are more names than this command takes, from {extra[1].split()[0]} on",
                "run it once for each",
            )
        message, code = f"error: {text}; {_option_that_was_meant(error, context) or remedy}", 2
    except MemoryError as error:
        message, code = f"error: not enough memory; {str(error) or 'use less'}", 1
    except OSError as error:
        message, code = f"error: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", 1
    except (CommandError, ImportError, ValueError, TypeError, ArithmeticError) as error:
        message, code = f"error: {error}", 2 if isinstance(error, (OptionError, ImportError)) else 1
    if code and sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:  # the interpreter would try again, and complain, when it ends
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if message:
        say(message)
    return code


def _option_that_was_meant(error: Exception, context: typer.Context | None) -> str:
    """A remedy for an option that the command does not have, which may be a word of another library."""
    if context is None or not hasattr(error, "possibilities"):
        return ""
    options = {str(each.name): max(each.opts, key=len) for each in context.command.params}
    options = {name: option for name, option in options.items() if option.startswith("--")}
    more = hint(error.option_name.lstrip("-").replace("-", "_"), options)  # type: ignore[attr-defined]
    if plain := re.fullmatch(r"; give (\w+)=", more):
        return f"give {options[plain[1]]}"
    if near := re.fullmatch(r"\. Did you mean '(\w+)'\?", more):
        return f"did you mean {options[near[1]]}?"
    commands = getattr(context.parent and context.parent.command, "commands", {})
    name = error.option_name  # type: ignore[attr-defined]
    others = [key for key, command in commands.items() if any(name in each.opts for each in command.params)]
    return f"it is an option of {', '.join(others)}; see {context.command_path} --help" if others else ""


@contextlib.contextmanager
def _termination_as_interruption(ended: list[int]) -> Iterator[None]:
    """Let unfinished files be removed. Only the main thread can set a handler; what nohup switched off stays off."""

    def stop(number: int, frame: FrameType | None) -> None:
        ended.append(number)
        interrupt = signal.getsignal(signal.SIGINT)  # asyncio has one of its own, which lets its tasks end
        (interrupt if callable(interrupt) else signal.default_int_handler)(number, frame)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if is_main and hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
