# SPDX-License-Identifier: BSD-3-Clause
"""The formats that are read and written. Whoever wrote an input is not trusted."""
