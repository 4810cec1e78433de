# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

import fastpe
from fastpe._cli.errors import CommandError, MissingLibrary

_largest_position = 2**53


@dataclasses.dataclass(frozen=True)
class EncodingOptions:
    """Which encoding, as the command line names it."""

    convention: str = "vaswani"
    base: float | None = None
    offset: int = 0
    num_threads: int | None = None

    def __post_init__(self) -> None:
        # A wrong name is wrong for every file.
        fastpe.conventions.find(self.convention)

    def encoder(self, d_model: int) -> fastpe.PositionalEncoding:
        """The encoder for one width; a ValueError says what does not fit."""
        return fastpe.PositionalEncoding(d_model, convention=self.convention, base=self.base)

    def require_positions(self, encoder: fastpe.PositionalEncoding, seq_len: int) -> None:
        """Refuse positions that cannot be encoded before anything is written."""
        if not seq_len:
            return
        encoder.encode(1, offset=self.offset, channels=(0, 1))
        last = encoder.convention.first_position + self.offset + seq_len - 1
        if last > _largest_position:
            raise ValueError(
                f"offset: the position of row {seq_len - 1} is {last}, expected magnitude at most 2**53; choose a smaller one"
            )


@dataclasses.dataclass(frozen=True)
class RotaryOptions:
    """Which rotary embedding, as the command line names it: by a config, or by width and base."""

    config: str | None = None
    layer_type: str | None = None
    interleaved: bool | None = None
    dim: int | None = None
    base: float | None = None

    def embedding(self, seq_len: int | None) -> fastpe.RotaryEmbedding:
        """The embedding for sequences of this length; errors say what does not fit."""
        if self.config is None:
            if self.dim is None:
                raise CommandError(
                    "there is no --config and no --dim, expected one of them; --dim is the number of columns that are rotated"
                )
            if self.layer_type is not None:
                raise CommandError(f"--layer-type is {self.layer_type} and there is no --config; leave it out")
            # Tables do not depend on the pairing.
            return fastpe.RotaryEmbedding(self.dim, interleaved=bool(self.interleaved), base=self.base)
        for name, value in (("--dim", self.dim), ("--base", self.base)):
            if value is not None:
                raise CommandError(f"{name} is {value} and --config has it, expected one of them; leave {name} out")
        _require_config(self.config)
        return fastpe.RotaryEmbedding.from_config(
            self.config, layer_type=self.layer_type, interleaved=self.interleaved, seq_len=seq_len
        )


def _require_config(name: str) -> None:
    """Refuse what is no file, with a remedy for a shell."""
    from fastpe._rotary.config_file import may_be_on_a_hub

    if os.path.exists(name):
        return
    if name.lstrip().startswith("{"):
        raise CommandError("--config is JSON, expected the name of a file; write it into a file")
    hint = (
        f"; for a name on a hub, `hf download {name} config.json` (of huggingface_hub) fetches the file"
        if may_be_on_a_hub(name)
        else "; correct the name"
    )
    raise CommandError(f"--config is {name}, which is no file, expected a model's config.json{hint}")


def dtype_of(name: str) -> np.dtype[Any]:
    """A dtype from its name."""
    if name in ("float16", "float32", "float64"):
        return np.dtype(name)
    if name == "bfloat16":
        try:
            from ml_dtypes import bfloat16
        except ModuleNotFoundError:
            raise MissingLibrary("--dtype bfloat16 needs ml_dtypes; install it with: pip install ml_dtypes") from None
        element_type: np.dtype[Any] = np.dtype(bfloat16)
        return element_type
    raise CommandError(f"--dtype is {name}, expected float16, bfloat16, float32 or float64")
