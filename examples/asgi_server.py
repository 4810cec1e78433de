# SPDX-License-Identifier: BSD-3-Clause
"""A server that turns token ids into a vector: fastpe makes the input of a graph, and ONNX Runtime runs it.

The graph has random weights and stands for a model of your own. It is a plain ASGI application, without a framework:

    pip install onnx onnxruntime uvicorn
    python -m uvicorn asgi_server:app --app-dir examples
    curl --data '[17, 3, 120]' http://127.0.0.1:8000

`python examples/asgi_server.py` calls the application without a server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

import fastpe

try:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise SystemExit(f"{error}: pip install onnx onnxruntime") from None

VOCABULARY, D_MODEL, LONGEST = 1000, 128, 4096
LONGEST_BODY = 1 << 20

Messages = Callable[[], Awaitable[dict[str, Any]]]
Answer = Callable[[dict[str, Any]], Awaitable[None]]


class Model:
    """Token ids in, one vector out."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.table = rng.standard_normal((VOCABULARY, D_MODEL), dtype=np.float32)
        weights = rng.standard_normal((D_MODEL, D_MODEL), dtype=np.float32) / np.float32(D_MODEL**0.5)
        nodes = [
            helper.make_node("MatMul", ["x", "weights"], ["hidden"]),
            helper.make_node("Tanh", ["hidden"], ["active"]),
            helper.make_node("ReduceMean", ["active", "axes"], ["vector"], keepdims=0),
        ]
        graph = helper.make_graph(
            nodes,
            "model",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["L", D_MODEL])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [D_MODEL])],
            [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.array([0]), "axes")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        options = onnxruntime.SessionOptions()
        # Requests share the processors: each has one thread, here and in fastpe.
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, ids: object) -> list[float]:
        """Return the vector of one sequence."""
        if not (isinstance(ids, list) and 0 < len(ids) <= LONGEST and all(type(token) is int for token in ids)):
            raise ValueError(f"the body is not a list of 1 to {LONGEST} token ids")
        x = fastpe.embed(np.array(ids), self.table, scale=D_MODEL**0.5, num_threads=1)
        (vector,) = self.session.run(None, {"x": x})
        result: list[float] = vector.tolist()
        return result


model = Model()


async def app(scope: dict[str, Any], receive: Messages, send: Answer) -> None:
    """Answer one request: a JSON list of token ids gets a JSON list of numbers."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more and len(body) <= LONGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        more = message.get("more_body", False)
    try:
        if more:
            raise ValueError(f"the body has more than {LONGEST_BODY} bytes")
        # Both libraries release the GIL, so the event loop can serve other requests.
        status, answer = 200, json.dumps(await asyncio.to_thread(model, json.loads(body)))
    except (IndexError, RecursionError, TypeError, ValueError) as error:
        # fastpe's messages name the argument, what was found and what was expected.
        status, answer = 400, json.dumps({"error": str(error)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.encode()})


async def call(body: bytes) -> tuple[int, Any]:
    """Return the status and the answer of one request, without a server."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http"}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def main() -> None:
    """Make a valid request and two invalid ones."""
    status, vector = asyncio.run(call(b"[17, 3, 120]"))
    assert (status, len(vector)) == (200, D_MODEL)
    print(f"{status}: {len(vector)} numbers, the first is {vector[0]:.6f}")
    for body in (b"[17, 1000]", b"{}"):
        status, answer = asyncio.run(call(body))
        assert status == 400
        print(f"{status}: {answer['error']}")


if __name__ == "__main__":
    main()
