# SPDX-License-Identifier: BSD-3-Clause
"""What a command says when it cannot do its work."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


class WrongUsage(CommandError):
    """An option or an argument has a value that no file and no machine could make right."""


class MissingLibrary(CommandError):
    """A library of an extra is not installed."""


def printable(text: str) -> str:
    """The text in one line, with escapes for what would move a terminal's cursor, colour it or turn its text around."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in " ".join(text.split())
    )


@contextlib.contextmanager
def needs(library: str, what: str) -> Iterator[None]:
    """Turn a failed import of a library into what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingLibrary(f"{what} need {library}; install it with: pip install {library}") from None


def first_line(error: Exception) -> str:
    """What an error says, in one line; its type where it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


@contextlib.contextmanager
def damage_in_one_line(
    source: str, expected: str, errors: tuple[type[Exception], ...], how: str = ""
) -> Iterator[None]:
    """Turn a library's errors about the content of a file into one line.

    Parameters
    ----------
    source
        The name of the file.
    expected
        What it should be, with an article.
    errors
        The types of the errors. Lack of memory and the system's own errors, which have a number, are none about content.
    how
        Advice on how to write the file anew.
    """
    try:
        yield
    except errors as error:
        if isinstance(error, CommandError | MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise CommandError(f"{source} is not {expected}, or damaged: {first_line(error)}; write it anew{how}") from None


# The options that set the arguments of the library.
_options = {
    "rotary_dim": "--dim",
    "d_model": "--d-model",
    "convention": "--convention",
    "layer_type": "--layer-type",
    "seq_len": "--seq-len",
    "form": "--form",
    "dtype": "--dtype",
    "base": "--base",
    "offset": "--offset",
    "config": "--config",
}
# What the library's messages say to somebody in Python, and what they say in a shell.
_in_a_shell = (
    (r"\binterleaved=True\b", "--interleaved"),
    (r"\binterleaved=False\b", "--no-interleaved"),
    (r"\bform='(\w+)'", r"--form \1"),
    (r"\bgive seq_len=$", "give --seq-len"),
    (r"\bRotaryEmbedding\((\d+), \.\.\)", r"--dim \1 and --base in place of --config"),
    (r"\bRotaryEmbedding\((?:rotary_dim, \.\.|\.\., base=\.\.)\)", "--dim and --base in place of --config"),
    (r"\bRotaryEmbedding\(\.\., scaling=\.\.\)", r"\g<0> in Python"),
    (r"\bcall one of these$", "call one of these in Python"),
)


def with_options(error: Exception | str, arguments: Sequence[str] = tuple(_options)) -> str:
    """What the library says is wrong, with options in place of `arguments`, and with remedies for a shell."""
    message = str(error)
    if (found := re.match(r"(\w+)(?= (?:is|was)\b|:)", message)) and found[1] in arguments:
        message = f"{_options[found[1]]}{message.removeprefix(found[1])}"
        message = re.sub(r"^(--[\w-]+) is None\b", r"there is no \1", message)
    for python, shell in _in_a_shell:
        message = re.sub(python, shell, message)
    return message
