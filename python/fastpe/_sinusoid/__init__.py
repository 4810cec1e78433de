# SPDX-License-Identifier: BSD-3-Clause
"""Encodings of one coordinate: conventions, the encoder, and the functions around it."""
