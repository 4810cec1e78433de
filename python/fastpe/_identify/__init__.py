# SPDX-License-Identifier: BSD-3-Clause
"""Which call makes somebody's table: readings of it, conventions that fit them, and the call, tried out."""
