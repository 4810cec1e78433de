# SPDX-License-Identifier: BSD-3-Clause
"""What each command does; `app` imports the one that is asked for."""
