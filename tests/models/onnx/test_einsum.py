"""Einsum of two float32 operands as a product, against onnxruntime."""

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime

from weft.models.ir import Gemm
from weft.models.onnx.einsum import form_of_equation

F32 = np.float32


@pytest.mark.parametrize("equation, shapes, kinds", [
    ("bij,jk->bik", [(2, 3, 4), (4, 5)], ["Einsum"]),
    ("a...j,jk->a...k", [(2, 3, 4), (4, 5)], ["onnx.model"]),
    ("ij,kj->ik", [(3, 4), (5, 4)], ["Einsum", "rearrange"]),
    ("bqhd,dhk->bqk", [(1, 3, 2, 4), (4, 2, 5)], ["reshape", "Einsum", "rearrange"]),
    ("bid,dhk->bihk", [(2, 3, 4), (4, 2, 5)], ["reshape", "Einsum", "rearrange"]),
    ("i,ij -> j", [(4,), (4, 5)], ["reshape", "Einsum", "reshape"]),
    ("ij,jk", [(3, 4), (4, 5)], ["onnx.model"]),
    ("ij,ij->ij", [(3, 4), (3, 4)], ["onnx.model"]),
    ("ii,ik->ik", [(3, 3), (3, 4)], ["onnx.model"]),
    ("ij,kl->ik", [(3, 4), (5, 6)], ["onnx.model"]),
])
def test_with_constant_weights(equation, shapes, kinds):
    b = Builder(seed=70)
    x = b.input("x", list(shapes[0]))
    y = b.node("Einsum", x, b.weights(*shapes[1]), equation=equation)
    values = [b.rng.normal(size=shapes[0]).astype(F32)]
    equal_to_runtime(b, y, values, kinds=kinds, tolerance=2e-5)


@pytest.mark.parametrize("equation, shapes", [
    ("...qhd,...khd->...hqk", [(1, 3, 2, 4), (1, 5, 2, 4)]),
    ("...hqk,...khd->...qhd", [(1, 2, 3, 5), (1, 5, 2, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bcij,bkij->bck", [(2, 3, 4, 5), (2, 6, 4, 5)]),
])
def test_of_two_activations(equation, shapes):
    b = Builder(seed=71)
    names = [b.input(name, list(shape)) for name, shape in zip("ab", shapes, strict=True)]
    y = b.node("Einsum", *names, equation=equation)
    values = [b.rng.normal(size=shape).astype(F32) for shape in shapes]
    graph = equal_to_runtime(b, y, values, kinds=None, tolerance=2e-5)
    assert sum(isinstance(node, Gemm) for node in graph.nodes) == 1


def test_a_bias_after_it_fuses():
    b = Builder(seed=73)
    y = b.node("Einsum", b.input("x", [2, 3, 4]), b.weights(4, 5), equation="abc,cd->abd")
    y = b.node("Relu", b.node("Add", y, b.weights(5)))
    equal_to_runtime(
        b, y, [b.rng.normal(size=(2, 3, 4)).astype(F32)], kinds=["Einsum"], tolerance=2e-5
    )


@pytest.mark.parametrize("equation", ["...ij,jk->...ik", "ij,jk->ij->", "i1,1j->ij", "ij->ji"])
def test_no_form(equation):
    assert form_of_equation(equation, 2, 2) is None
