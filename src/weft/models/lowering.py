"""Matrix operators as products for the core: how tensors become A and B, and results y."""

import math
from dataclasses import dataclass

import numpy as np

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.windows import WindowRows

__all__ = ["MatrixRows", "PairRows", "candidates"]


@dataclass(frozen=True)
class MatrixRows:
    """A product with constant weights, without a window: all rows of x are the rows of A.

    Attributes
    ----------
    k, n : int
    transposed : bool
        x is [..., K, M].
    """

    k: int
    n: int
    transposed: bool = False

    method = "matrix"
    count = 1

    def m(self, x_shape: tuple[int, ...]) -> int:
        """Return M of the product for an x of ``x_shape``, which may have more batch axes."""
        return math.prod(x_shape) // self.k

    def macs(self, x_shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulate operations."""
        return math.prod(x_shape) * self.n

    def weights(self, weights: np.ndarray, zero: np.ndarray) -> np.ndarray:
        """Return B, [1, k, n], from the weights [1, K, N]."""
        return weights

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """Return values of the columns, [N], as [1, n]."""
        return values[None]

    def write(self, x: np.ndarray, zero: int, rows: np.ndarray) -> None:
        """Write A to ``rows`` [1, m, k]."""
        if not self.transposed:
            rows[0] = x.reshape(-1, self.k)
            return
        x = x.reshape(-1, *x.shape[-2:]).swapaxes(1, 2)
        rows.reshape(x.shape)[...] = x

    def outputs(self, results: np.ndarray) -> np.ndarray:
        """Return y as [M, N] from the results [1, m, n]."""
        return results[0]

    def arrange(self, y: np.ndarray) -> np.ndarray:
        """Return y."""
        return y


@dataclass(frozen=True)
class PairRows:
    """A product of two activations: x [..., M, K] and b [..., K, N], whose batches broadcast.

    If b has no batch, all rows of x of one inference are the rows of one A.

    Attributes
    ----------
    x_shape, b_shape : tuple of int
        Shapes of one inference.
    x_transposed, b_transposed : bool
        x is [..., K, M], or b is [..., N, K].
    """

    x_shape: tuple[int, ...]
    b_shape: tuple[int, ...]
    x_transposed: bool = False
    b_transposed: bool = False

    method = "matrix"

    @property
    def k(self) -> int:
        """K of the products."""
        return self.x_shape[-2 if self.x_transposed else -1]

    @property
    def n(self) -> int:
        """N of the products."""
        return self.b_shape[-2 if self.b_transposed else -1]

    @property
    def _rows(self):
        return self.x_shape[-1 if self.x_transposed else -2]

    @property
    def _lead(self):
        return np.broadcast_shapes(self.x_shape[:-2], self.b_shape[:-2])

    @property
    def _folds(self):
        return math.prod(self.b_shape[:-2]) == 1

    @property
    def count(self) -> int:
        """Number of products of one inference."""
        return 1 if self._folds else math.prod(self._lead)

    def m(self, x_shape: tuple[int, ...]) -> int:
        """Return M of the products."""
        return self._rows * (math.prod(self._lead) if self._folds else 1)

    def macs(self, x_shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulate operations of one inference."""
        return math.prod(self._lead) * self._rows * self.k * self.n

    def write(self, x: np.ndarray, zero: int, rows: np.ndarray) -> None:
        """Write A to ``rows`` [inferences * count, m, k] from x [inferences, ...]."""
        x = x.swapaxes(-1, -2) if self.x_transposed else x
        rows[...] = self._broadcast(x, self.x_shape).reshape(rows.shape)

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """Return values of the columns, [N] or [1], as [1, n]."""
        return np.broadcast_to(values, (1, self.n))

    def write_columns(self, b: np.ndarray, columns: np.ndarray) -> None:
        """Write the columns of B to ``columns`` [inferences * count, n, k]."""
        b = b if self.b_transposed else b.swapaxes(-1, -2)
        whole = b.reshape(-1, *b.shape[-2:]) if self._folds else self._broadcast(b, self.b_shape)
        columns[...] = whole.reshape(columns.shape)

    def outputs(self, results: np.ndarray) -> np.ndarray:
        """Return y as [..., M, N] from the results."""
        return results

    def arrange(self, y: np.ndarray) -> np.ndarray:
        """Return y."""
        return y

    def _broadcast(self, values, shape):
        """Return values [inferences, ...] with the batch axes of the product."""
        lead = self._lead
        added = (1,) * (len(lead) - len(shape) + 2)
        values = values.reshape(len(values), *added, *values.shape[1:])
        return np.broadcast_to(values, (len(values), *lead, *values.shape[-2:]))


def candidates(gemm: Gemm, x_shape, b_shape, cols: int) -> list[MatrixRows | PairRows | WindowRows]:
    """Return the ways to compute an operator on an array of ``cols`` columns.

    The first one has the weights as they are. Operators with groups of few columns have others:
    block-diagonal and Toeplitz weights, and both at once, as many as fill the columns of the array.

    Raises ModelError if the shapes of the operator do not fit together.
    """
    if gemm.weights is None:
        return [PairRows(tuple(x_shape), tuple(b_shape), gemm.x_transposed, gemm.b_transposed)]
    groups, k, n = gemm.weights.shape
    if gemm.window is None:
        depth = x_shape[-2 if gemm.x_transposed else -1] if x_shape else 0
        if groups != 1 or math.prod(x_shape) % k or gemm.x_transposed and depth != k:
            raise ModelError(f"{gemm.operator} {gemm.name}: x {x_shape} does not fit K of {k}")
        return [MatrixRows(k, n, gemm.x_transposed)]
    area = math.prod(gemm.window.kernel)
    if k % area or math.prod(x_shape) % (math.prod(gemm.window.input) * groups * (k // area)):
        raise ModelError(f"{gemm.operator} {gemm.name}: x {x_shape} does not fit K of {k}")

    def rows(together, neighbours):
        return WindowRows(
            gemm.window, gemm.layout, groups, k // area, n, together, neighbours
        )

    # Groups together: neighbours. Of equal numbers of groups, the most neighbours.
    found: dict[int, int] = {}
    if groups > 1:
        for neighbours in range(1, min(cols, gemm.window.output[1]) + 1):
            together = min(groups, cols // (n * neighbours))
            if together:
                found[together] = neighbours
    ways = [rows(together, neighbours) for together, neighbours in found.items()]
    plain = rows(1, 1)
    return [plain, *(way for way in ways if way != plain)]
