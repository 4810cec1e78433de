# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that attention adds to its scores."""
