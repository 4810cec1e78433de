# SPDX-License-Identifier: BSD-3-Clause
"""One function for each command, with its options."""
