# SPDX-License-Identifier: BSD-3-Clause
"""The decoders of examples/ beside transformers and ONNX Runtime.

Run it with ``pytest -m peers tests/peers/test_rotary_examples.py``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ..oracles.examples import example
from .conftest import Measured

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

Array = npt.NDArray[Any]

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 16,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {}),
    "llama, llama3": ("LlamaForCausalLM", {"rope_parameters": LLAMA3}),
    "qwen2": ("Qwen2ForCausalLM", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen2, yarn": ("Qwen2ForCausalLM", {"rope_parameters": YARN}),
}


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_the_numpy_decoder_are_those_of_transformers(name: str, measured: Measured) -> None:
    """In prefill and decoding, to rounding: transformers in float64 is the measure, and its own float32 the bound."""
    torch, transformers = (pytest.importorskip(module) for module in ("torch", "transformers"))
    decoder_module = example("numpy_decoder")
    class_name, arguments = MODELS[name]
    with warnings.catch_warnings(), torch.random.fork_rng(), torch.inference_mode():
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        model_class = getattr(transformers, class_name)
        sizes = {
            key: value for key, value in decoder_module.TINY.items() if key not in ("model_type", "rope_parameters")
        }
        # Weights large enough that attention is far from uniform.
        config = model_class.config_class(**sizes, initializer_range=0.3, **arguments)
        model = model_class(config).eval()
        for parameter in model.parameters():
            if parameter.ndim == 1:
                # Biases start at 0 and norms at 1, where a mistake would not show.
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        weights = {key: value.numpy().copy() for key, value in model.state_dict().items()}
        ids = torch.randint(config.vocab_size, (2, 40))
        float32 = model(ids).logits.double().numpy()
        exact = model.double()(ids).logits.numpy()

    decoder = decoder_module.Decoder(config.to_dict(), weights, batch=2, longest=64)
    tokens = ids.numpy()
    logits = np.concatenate([decoder(tokens[:, :24]), *(decoder(tokens[:, i : i + 1]) for i in range(24, 40))], axis=1)
    difference = float(np.abs(logits - exact).max())
    bound = 4 * float(np.abs(float32 - exact).max())
    measured.append((f"numpy_decoder.py, {name}", str(list(logits.shape)), difference, bound))
    assert logits.dtype == np.float32
    assert bound < 1e-4 * np.abs(exact).max()
    assert difference <= bound


def test_the_decoder_in_onnxruntime_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for library in ("onnx", "onnxruntime"):
        pytest.importorskip(library)
    # It compares its logits with those of the decoder in NumPy.
    example("numpy_decoder")
    example("onnx_decoder").main()
    assert "logits as in NumPy" in capsys.readouterr().out
