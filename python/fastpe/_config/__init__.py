# SPDX-License-Identifier: BSD-3-Clause
"""What a config.json says of a model."""
