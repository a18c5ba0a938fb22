"""Einsum of two operands as a matrix product: which axes are batch, rows, columns and K."""

import math
import re
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Gemm

__all__ = ["ProductForm", "form_of_equation", "form_of_operator", "lower"]

_FLOAT = np.dtype(np.float32)
_ELLIPSIS_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # letters for the axes of an ellipsis
_MOVES_DATA = "moves data"  # why an operator runs on the host, in reports


@dataclass(frozen=True)
class ProductForm:
    """The axes of ``a``, ``b`` and the result, in the order of a matrix product.

    Transposed by ``a_axes``, a has the axes (batch, M, K); b has (batch, K, N) by ``b_axes``. The
    product has the axes (batch, M, N), and is the result after a transposition by ``y_axes``.

    Attributes
    ----------
    a_axes, b_axes, y_axes : tuple of int
    batch, m, n, k : int
        Numbers of axes.
    """

    a_axes: tuple[int, ...]
    b_axes: tuple[int, ...]
    y_axes: tuple[int, ...]
    batch: int
    m: int
    n: int
    k: int

    @property
    def is_matmul(self) -> bool:
        """Whether MatMul computes the same, without a transposition."""
        moves = any(
            axes != tuple(range(len(axes))) for axes in (self.a_axes, self.b_axes, self.y_axes)
        )
        # With a batch, MatMul takes all axes of a but the last two for batch axes.
        return not moves and self.n == self.k == 1 and (self.m == 1 or not self.batch)


def form_of_equation(equation: str, a_rank: int, b_rank: int) -> ProductForm | None:
    """The form of an equation such as ``...qhd,...khd->...hqk``; None if it is no matrix product.

    A matrix product sums over at least one axis of both operands. An axis of one operand is not
    repeated, and is an axis of the other operand or of the result.
    """
    terms = re.fullmatch(r"([^,>]*),([^,>]*)->([^,>]*)", equation.replace(" ", ""))
    if terms is None:
        return None
    a, b, y = terms.groups()
    letters = _ELLIPSIS_LETTERS.translate({ord(letter): None for letter in equation})
    # Both ellipses stand for the same axes. If they had different numbers of axes, the second turn
    # would find no ellipsis, and the lengths below would not fit.
    for axes in {rank - len(term.replace("...", "")) for term, rank in ((a, a_rank), (b, b_rank))
                 if "..." in term}:
        if not 0 <= axes <= len(letters) or ("..." in a) != ("..." in b):
            return None
        a, b, y = (term.replace("...", letters[:axes]) for term in (a, b, y))
    fits = (len(a), len(b)) == (a_rank, b_rank) and (a + b + y).isalpha()
    if not fits or any(len(set(term)) != len(term) for term in (a, b, y)):
        return None
    batch = [c for c in y if c in a and c in b]
    m, n = ([c for c in y if c in one and c not in other] for one, other in ((a, b), (b, a)))
    k = [c for c in a if c in b and c not in y]
    sizes = [len(letters) for letters in (batch, m, n, k)]
    # Each axis of a is one of batch, M or K; of b, batch, K or N; of the result, batch, M or N.
    if not k or (sum(sizes[:2]) + len(k), sizes[0] + sizes[2] + len(k), sum(sizes[:3])) != (
        len(a), len(b), len(y)
    ):
        return None
    return ProductForm(
        tuple(map(a.index, [*batch, *m, *k])), tuple(map(b.index, [*batch, *k, *n])),
        tuple([*batch, *m, *n].index(c) for c in y), *sizes,
    )


def form_of_operator(source, operator) -> ProductForm | None:
    """The form of an Einsum of float32; None if it is something else."""
    names = operator.inputs
    if operator.domain not in ("", "ai.onnx") or operator.kind != "Einsum" or len(names) != 2:
        return None
    if any(source.types[name][0] != _FLOAT for name in names):
        return None
    shapes = [source.types[name][1] for name in names]
    form = form_of_equation(operator.attributes["equation"], *map(len, shapes))
    fits = form is not None and 0 not in (*shapes[0], *shapes[1]) and _sizes_agree(form, *shapes)
    return form if fits else None


def lower(importer, operator) -> bool:
    """Append the product of a float32 Einsum, with transpositions.

    Returns False if it is no such product: the importer then asks the next module.
    """
    source, names = importer.source, operator.inputs
    form = form_of_operator(source, operator)
    if form is None:
        return False
    shapes = [source.types[name][1] for name in names]
    sizes = [shapes[0][axis] for axis in form.a_axes]
    batch, m, k = sizes[: form.batch], sizes[form.batch :][: form.m], sizes[form.batch + form.m :]
    n = [shapes[1][axis] for axis in form.b_axes][form.batch + form.k :]
    m_size, k_size, n_size = (math.prod(lengths) for lengths in (m, k, n))
    # The weights of a Gemm have no batch: with one, b is a tensor even if it is constant.
    constant = None if batch else importer.float_constant(names[1])
    x = _transposed_and_reshaped(
        importer, operator, names[0], form.a_axes, (*batch, m_size, k_size)
    )
    weights, b = None, None
    if constant is None:
        b = _transposed_and_reshaped(
            importer, operator, names[1], form.b_axes, (*batch, k_size, n_size)
        )
    else:
        weights = np.ascontiguousarray(constant.transpose(form.b_axes))
        weights = weights.reshape(1, k_size, n_size)  # [groups, K, N]
    y = importer.new_tensor(operator.outputs[0], (*batch, m_size, n_size), _FLOAT)
    importer.emit(Gemm(
        operator=operator.title, name=operator.name, position=(operator.index,),
        inputs=(x,) if b is None else (x, b), outputs=(y,), x=x, weights=weights, b=b,
    ))
    importer.add_host(
        operator, "rearrange", [y], importer.tensor(operator.outputs[0]), _MOVES_DATA,
        split=(*batch, *m, *n), axes=form.y_axes, shape=source.types[operator.outputs[0]][1],
    )
    return True


def _sizes_agree(form, a_shape, b_shape):
    """Whether common axes have one size: an axis of size 1 is not repeated in a matrix product."""
    common = [form.a_axes[: form.batch], form.b_axes[: form.batch]]
    k = [form.a_axes[form.batch + form.m :], form.b_axes[form.batch :][: form.k]]
    return all(
        [a_shape[axis] for axis in pair[0]] == [b_shape[axis] for axis in pair[1]]
        for pair in (common, k)
    )


def _transposed_and_reshaped(importer, operator, name, axes, shape):
    """The number of a new tensor: ``name``, transposed by ``axes`` and reshaped to ``shape``."""
    before = importer.source.types[name][1]
    number = importer.value(name)
    if axes == tuple(range(len(before))):
        return importer.reshaped(operator, number, shape)
    output = importer.new_tensor(name, shape, _FLOAT)
    importer.add_host(
        operator, "rearrange", [number], output, _MOVES_DATA, split=tuple(before), axes=axes,
        shape=tuple(shape),
    )
    return output
