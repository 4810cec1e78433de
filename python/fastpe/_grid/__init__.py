# SPDX-License-Identifier: BSD-3-Clause
"""Encodings of more than one coordinate: each axis has an encoding of its own, and they share the columns."""
