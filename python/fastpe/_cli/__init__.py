# SPDX-License-Identifier: BSD-3-Clause
"""The command line, in parts: `app` declares the commands, the other modules do their work."""
