# SPDX-License-Identifier: BSD-3-Clause
"""How images, videos and text among them are numbered, and rotated by several coordinates."""
