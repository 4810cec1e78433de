# SPDX-License-Identifier: BSD-3-Clause
"""The command line.

`run` is one run of the program, `app` declares the commands and their options, `commands` has what each of them does, and
`files` the formats that they read and write.
"""
