# SPDX-License-Identifier: BSD-3-Clause
"""Speed, compared with what the machine allows and what people use instead; every answer is checked before it is timed.

Every case runs with each instruction set, with one thread and with all; what takes part takes turns. `--help` has the
commands.
"""
