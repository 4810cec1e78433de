# SPDX-License-Identifier: BSD-3-Clause
"""The command line: `run` is one run, `app` lists the commands, and the other files have them and the formats of files."""
