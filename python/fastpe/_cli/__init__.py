# SPDX-License-Identifier: BSD-3-Clause
"""The command line: `run` is one run, `app` has the commands, `commands` what they do, `files` what they read and write."""
