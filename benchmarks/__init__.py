# SPDX-License-Identifier: BSD-3-Clause
"""Speed, compared with what people use instead; every answer is checked before it is timed. `--help` has the commands."""

import pathlib

root = pathlib.Path(__file__).parent.parent
