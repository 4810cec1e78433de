# SPDX-License-Identifier: BSD-3-Clause
"""What a command says when it cannot do its work."""


class CommandError(Exception):
    """One line for the user: what was found, what was expected, and the remedy."""


class ReaderGone(Exception):
    """The reader of standard output has what it wants; no reason to say anything."""
