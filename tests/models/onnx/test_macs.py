"""The MAC of nodes that onnxruntime computes."""

from types import SimpleNamespace

import pytest

from weft.models.onnx.importer import macs_of

NODES = {  # kind: attributes, shapes of the inputs, shape of the output, MAC by hand
    "Conv": ({}, [(1, 4, 9, 9), (6, 2, 3, 3)], (1, 6, 7, 7), 49 * 6 * 18),
    "ConvTranspose": ({}, [(1, 4, 5, 5), (4, 6, 3, 3)], (1, 6, 7, 7), 25 * 4 * 54),
    "QLinearConv": ({}, [(1, 4, 9, 9), (), (), (6, 4, 1, 1)], (1, 6, 9, 9), 81 * 6 * 4),
    "MatMul": ({}, [(2, 3, 4), (4, 5)], (2, 3, 5), 2 * 3 * 4 * 5),
    "Gemm": ({"transA": 1}, [(4, 3), (4, 5)], (3, 5), 3 * 4 * 5),
    "LSTM": ({}, [(7, 2, 6), (1, 16, 6), (1, 16, 4)], (7, 1, 2, 4), 14 * (96 + 64)),
    "com.microsoft.Attention": (
        {}, [(2, 3, 8), (8, 20), (20,)], (2, 3, 4), 2 * 3 * (8 * 20 + 3 * 8 + 3 * 4)
    ),
    "Attention": (
        {}, [(1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 6), (), (1, 2, 4, 8)], (1, 2, 3, 6),
        2 * 3 * (5 + 4) * (8 + 6),
    ),
    "Softmax": ({}, [(2, 3)], (2, 3), 0),
}


@pytest.mark.parametrize("kind", NODES)
def test_macs(kind):
    attributes, inputs, y, macs = NODES[kind]
    types = {f"i{n}": ("", shape) for n, shape in enumerate(inputs)} | {"y": ("", y)}
    domain, _, kind = kind.rpartition(".")
    operator = SimpleNamespace(
        kind=kind, domain=domain, attributes=attributes,
        inputs=[f"i{n}" for n in range(len(inputs))], outputs=["y"],
    )
    assert macs_of(operator, types) == macs
