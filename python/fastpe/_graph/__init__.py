# SPDX-License-Identifier: BSD-3-Clause
"""What an exported graph takes as inputs: position ids, indices and lengths that depend on values."""
