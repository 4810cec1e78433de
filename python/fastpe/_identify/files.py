# SPDX-License-Identifier: BSD-3-Clause
"""How to read a table out of a file, by the suffix of its name: what messages tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Reading(NamedTuple):
    """Python that reads a file of one format; FILE stands for its name.

    Attributes
    ----------
    description : str
        What the file is, with an article.
    module : str
        The module that reads it.
    array : str
        An expression for the array; if there are several in a file, for the one with the name NAME.
    names : str
        An expression for the names; empty where there are none.
    remark : str
        What else the reader may have to know.
    """

    description: str
    module: str
    array: str
    names: str = ""
    remark: str = ""

    def of(self, name: str) -> Reading:
        """The same for the file of this name."""
        literal = _literal(name)
        return self._replace(array=self.array.replace("FILE", literal), names=self.names.replace("FILE", literal))


def _literal(name: str) -> str:
    """Python that every shell leaves as it is between double quotes."""
    escaped = (
        character
        if character.isalnum() or character in "./_-"
        else f"\\x{ord(character):02x}"
        if ord(character) < 256
        else f"\\U{ord(character):08x}"
        for character in name
    )
    return f"'{''.join(escaped)}'"


_torch = Reading(
    "a PyTorch file",
    "torch",
    "torch.load(FILE, map_location='cpu', weights_only=True)['NAME'].detach().float().numpy()",
    "list(torch.load(FILE, map_location='cpu', weights_only=True))",
    "; write ['state_dict']['NAME'] if there is a state_dict, and leave ['NAME'] out if the file is one tensor",
)
_onnx = Reading(
    "an ONNX model",
    "onnx",
    "next(onnx.numpy_helper.to_array(t) for t in onnx.load(FILE).graph.initializer if t.name == 'NAME')",
    "[t.name for t in onnx.load(FILE).graph.initializer]",
)
_safetensors = Reading(
    "a safetensors file",
    "safetensors.numpy",
    "safetensors.numpy.load_file(FILE)['NAME']",
    "list(safetensors.numpy.load_file(FILE))",
)
_npz = Reading("a .npz archive", "numpy", "numpy.load(FILE)['NAME']", "numpy.load(FILE).files")
_npy = Reading("one .npy array", "numpy", "numpy.load(FILE)")
foreign = {**dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _torch), ".onnx": _onnx}
_readings = {**foreign, ".safetensors": _safetensors, ".npz": _npz}


def reading_of(name: str | bytes | os.PathLike[str]) -> Reading:
    """How to read the file of this name; as .npy if its suffix says nothing."""
    text = os.fsdecode(name)
    return _readings.get(Path(text).suffix.lower(), _npy).of(text)
