# SPDX-License-Identifier: BSD-3-Clause
"""Commands that are wrong, what they are told, and the commands that follow it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from fastpe.__main__ import main

from ..oracles.remedies import check_remedy

FILES: dict[str, object] = {
    "x.npy": np.ones((3, 8), np.float32),
    "row.npy": np.ones(8, np.float32),
    "ids.npy": np.ones((3, 8), np.int64),
    "short.npy": np.ones((3, 8), "V2"),
    "saved.npy": np.ones((3, 8), np.int64).astype("float32"),
    "saved_row.npy": np.ones(8, np.float32)[None],
    "two.npz": {"a": np.ones((3, 8)), "b": np.ones((3, 8))},
    "unknown.json": {"model_type": "unheard_of", "head_dim": 8, "rope_theta": 1e4},
    "gemma.json": {"model_type": "gemma3_text", "head_dim": 8},
    "gpt2.json": {"model_type": "gpt2"},
    "yarn4.json": {"model_type": "llama", "head_dim": 8, "rope_scaling": {"type": "yarn", "factor": 4.0}},
    "yarn.json": {"model_type": "llama", "head_dim": 8, "rope_scaling": {"type": "yarn"}},
    "null.json": {"model_type": "llama", "head_dim": 8, "rope_scaling": {"type": "yarn", "factor": None}},
}

# The command, a part of what it is told, and the command that follows it.
REMEDIED: list[tuple[str, str, str]] = [
    ("add x.npy", "give -o OUT for a new file, or --in-place to change the input", "add x.npy -o y.npy"),
    (
        "add x.npy -o y.npy --in-place",
        "-o is y.npy and --in-place was given, expected one of them",
        "add x.npy -o y.npy",
    ),
    ("add x.npy -o x.npy", "name another output, or change an .npy file with --in-place", "add x.npy --in-place"),
    ("add row.npy -o y.npy", "save x[None] for one row", "add saved_row.npy -o y.npy"),
    ("add ids.npy -o y.npy", "save it with .astype('float32')", "add saved.npy -o y.npy"),
    ("add short.npy -o y.npy", "give --dtype bfloat16", "add short.npy -o y.npy --dtype bfloat16"),
    ("add two.npz -o y.npz", "holds 2 arrays (a, b); choose with --key NAME", "add two.npz -o y.npz --key a"),
    (
        "add x.npy -o y.npy --convention fairsec",
        "--convention is 'fairsec', which is not known; did you mean 'fairseq'?",
        "add x.npy -o y.npy --convention fairseq",
    ),
    ("add x.npy -o y.npy --offset 1.5", "--offset is 1.5, expected an integer", "add x.npy -o y.npy --offset 1"),
    ("add x.npy -o y.npy --ofset 1", "did you mean '--offset'?", "add x.npy -o y.npy --offset 1"),
    ("add x.npy -o y.npy --theta 500", "did you mean '--base'? See fastpe add --help", "add x.npy -o y.npy --base 500"),
    ("add x.npy -o y.npy --mask m", "No such option: --mask; see fastpe add --help", "add --help"),
    ("add x.npy -o", "see fastpe add --help", "add --help"),
    ("x.npy -o y.npy", "did you mean fastpe add x.npy?", "add x.npy -o y.npy"),
    (
        "--offset 3 add x.npy -o y.npy",
        "it is an option of encode, rotary, add, and stands behind the command",
        "add --offset 3 x.npy -o y.npy",
    ),
    ("encode --seq-len 3 --dim 8 -o y.npy", "did you mean '--d-model'?", "encode --seq-len 3 --d-model 8 -o y.npy"),
    (
        "rotary --dim 8 --rope-theta 5e5 --seq-len 3 -o y.npz",
        "did you mean '--base'?",
        "rotary --dim 8 --base 5e5 --seq-len 3 -o y.npz",
    ),
    ("add x.npy -o none/y.npy", "none is no directory; make it first", "add x.npy -o made/y.npy"),
    (
        "encode --seq-len 3 --d-model 7 --convention mlx -o y.npy",
        "--d-model is 7",
        "encode --seq-len 3 --d-model 8 -o y.npy",
    ),
    ("encode --seq-len 3 --d-model 8 -o y.npz", "ends in .npy", "encode --seq-len 3 --d-model 8 -o y.npy"),
    ("encode --seq-len 3 --d-model 8 -o y.safetensors", "ends in .npy", "encode --seq-len 3 --d-model 8 -o y"),
    ("add x.npy -o y.safetensors", "give y.safetensors the suffix .npy", "add x.npy -o y"),
    ("add x.npy -o y.foo", "give y.foo the suffix .npy", "add x.foo -o y.foo"),
    ("add two.npz --key a -o y.foo", "give y.foo the suffix .npz", "add two.npz --key a -o y.npz"),
    (
        "add x.npy --in-place --no-clobber",
        "expected one of them; leave one out",
        "add x.npy --in-place",
    ),
    (
        "encode --seq-len 3 --d-model 8 --convention mae2d -o y.npy",
        "--convention is 'mae2d', which is a convention of grids, for fastpe.encode_grid and encode_coordinates; call",
        "conventions mae2d",
    ),
    (
        "encode --seq-len 3 --d-model 8 --base 0 -o y.npy",
        "--base is 0, expected a finite number above 0",
        "encode --seq-len 3 --d-model 8 --base 1 -o y.npy",
    ),
    ("rotary --dim 0 --seq-len 3 -o y.npz", "an integer that is at least 2", "rotary --dim 2 --seq-len 3 -o y.npz"),
    (
        "rotary --dim 8 --seq-len 3 --form complex --dtype float16 -o y.npz",
        "--dtype is float16, expected float32 or float64, the dtype of the parts, for --form complex",
        "rotary --dim 8 --seq-len 3 --form complex --dtype float32 -o y.npz",
    ),
    (
        "rotary --config nofile.json --seq-len 3 -o y.npz",
        "--config is nofile.json, which is no file, expected a model's config.json; correct the name",
        "rotary --config yarn4.json --seq-len 3 -o y.npz",
    ),
    (
        "rotary --config made --seq-len 3 -o y.npz",
        "--config is 'made', a directory, expected a file; it has no config.json: give the path of one",
        "rotary --config yarn4.json --seq-len 3 -o y.npz",
    ),
    (
        "rotary --config organisation/model --seq-len 3 -o y.npz",
        "for a name on a hub, `hf download organisation/model config.json` (of huggingface_hub) fetches the file",
        "rotary --config yarn4.json --seq-len 3 -o y.npz",
    ),
    (
        """rotary --config '{"model_type": "llama"}' --seq-len 3 -o y.npz""",
        "--config is JSON, expected the name of a file; write it into a file",
        "rotary --config yarn4.json --seq-len 3 -o y.npz",
    ),
    (
        "rotary --config gpt2.json --seq-len 3 -o y.npz",
        "or use --dim and --base in place of --config if yours has one",
        "rotary --dim 8 --base 1e4 --seq-len 3 -o y.npz",
    ),
    (
        "add x.npy -o y.npy --offset 9007199254740991",
        "x.npy: --offset: the position of row 2 is 9007199254740993, expected magnitude at most 2**53; choose a smaller",
        "add x.npy -o y.npy --offset 9007199254740989",
    ),
    (
        "add x.npy -o row.npy/y.npy",
        "row.npy is a file, expected a directory; name another one",
        "add x.npy -o made/y.npy",
    ),
    ("identify -", "identify reads no pipe; write the table into a file", "identify table.npy"),
    (
        "identify x.csv",
        "x.csv is no .npy, .npz or .safetensors file; write the table with numpy.save",
        "identify table.npy",
    ),
    ("add model.pt -o y.npy", "numpy.save('table.npy', torch.load('model.pt'", "add x.npy -o y.npy"),
    (
        "rotary --seq-len 3 -o y.npz",
        "--dim is the number of columns that are rotated",
        "rotary --dim 8 --seq-len 3 -o y.npz",
    ),
    ("rotary --dim 7 --seq-len 3 -o y.npz", "--dim is 7, expected an even", "rotary --dim 8 --seq-len 3 -o y.npz"),
    (
        "rotary --dim 8 --seq-len 3 -o y.npy",
        "write a .npz or .safetensors file, or choose a --form of one array",
        "rotary --dim 8 --seq-len 3 -o y.npy --form cos_sin",
    ),
    (
        "rotary --dim 8 --seq-len 3 -o y.npz --form half",
        "did you mean 'halves'?",
        "rotary --dim 8 --seq-len 3 -o y.npz --form halves",
    ),
    (
        "rotary --config unknown.json --seq-len 3 -o y.npz",
        "give --interleaved for neighbours, or --no-interleaved",
        "rotary --config unknown.json --seq-len 3 -o y.npz --no-interleaved",
    ),
    (
        "rotary --config unknown.json --dim 8 --seq-len 3 -o y.npz",
        "leave --dim out",
        "rotary --config unknown.json --no-interleaved --seq-len 3 -o y.npz",
    ),
    (
        "rotary --config gemma.json --seq-len 3 -o y.npz",
        "there is no --layer-type, but this model has several types of layers; give one of 'full_attention'",
        "rotary --config gemma.json --seq-len 3 -o y.npz --layer-type full_attention",
    ),
    (
        "rotary --config yarn.json --seq-len 3 -o y.npz",
        '"factor": null',
        "rotary --config null.json --seq-len 3 -o y.npz",
    ),
    (
        "rotary --dim 8 --seq-len 3 --form complex --dtype float64 -o y.safetensors",
        "write a .npy or .npz file, or choose --dtype float32",
        "rotary --dim 8 --seq-len 3 --form complex -o y.safetensors",
    ),
    ("identify made", "made is a directory, expected a .npy", "identify table.npy"),
    ("identify t.parquet", "t.parquet is a Parquet file, expected a .npy", "identify table.npy"),
    ("identify tables.npz", "choose with --key NAME", "identify tables.npz --key a"),
    ("identify table.npy --key a", "leave it out", "identify table.npy"),
    (
        "conventions whisper",
        "NAME is 'whisper', which is not known; 'tensor2tensor' serves",
        "conventions tensor2tensor",
    ),
    ("conventions mae2", "did you mean 'mae2d'?", "conventions mae2d"),
    ("conventions nope", "doubled_exponent, mae2d,", "conventions loftr"),
    ("conventions fairsec", "did you mean 'fairseq'?", "conventions fairseq"),
    ("convention", "did you mean 'conventions'?", "conventions"),
]


@pytest.mark.parametrize(("wrong", "remedy", "remedied"), REMEDIED, ids=[wrong for wrong, *_ in REMEDIED])
def test_the_remedy_works(
    wrong: str,
    remedy: str,
    remedied: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made").mkdir()
    for name, content in FILES.items():
        if name.endswith(".json"):
            Path(name).write_text(json.dumps(content))
        elif isinstance(content, dict):
            np.savez(name, **content)
        else:
            np.save(name, np.asarray(content))
    angles = np.outer(np.arange(30), 10000.0 ** (-np.arange(8) / 8))
    table = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    np.save("table.npy", table)
    np.savez("tables.npz", a=table, b=table)
    Path("x.csv").write_text("1,2")
    Path("x.foo").write_bytes(Path("x.npy").read_bytes())
    Path("model.pt").write_bytes(b"PK\x03\x04")
    Path("t.parquet").write_bytes(b"PAR1")

    def attempt(command: str) -> str:
        code = main(shlex.split(command))
        said = capsys.readouterr().err.removesuffix("\n")
        return said if code in (1, 2) else ""

    check_remedy(attempt, wrong, remedy, remedied)
