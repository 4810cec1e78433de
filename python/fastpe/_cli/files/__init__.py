# SPDX-License-Identifier: BSD-3-Clause
"""Files that ``fastpe add`` and ``fastpe encode`` read and write.

`pairing` makes `Task` objects from names, `formats` finds the module of an input's format, whose `check` makes `Work` of a
task, and `addition` adds to the arrays in it.
"""
