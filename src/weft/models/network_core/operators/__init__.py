"""Operators without a layer of their own, as layers that the core has.

Only SOFTMAX and LSTM need hardware of their own, options of a core. A layer is a convolution with
weights, a bias, a scale and limits; then it may add a map through a table. So

* what moves values is a view of a map, or a convolution whose weights are 0 and 1;
* what is linear is a convolution;
* ``max(a, b) = a + clamp(b - a, 0, 255)``: a difference with limits, and a sum;
* a function of one value is a table, however many operators compute it (`functions`).

A module of this package has functions that take an `OperatorBuilder` and return the map of the
result; `LOWERINGS` names them by their kernels.
"""

from weft.models.network_core.operators import (
    filters,
    map_products,
    moves,
    operands,
    reductions,
    resizing,
    squares,
    wide_operators,
)

__all__ = ["LOWERINGS"]

LOWERINGS = {
    **moves.LOWERINGS, **operands.LOWERINGS, **reductions.LOWERINGS, **resizing.LOWERINGS,
    **map_products.LOWERINGS, **squares.LOWERINGS,
    **filters.LOWERINGS, **wide_operators.LOWERINGS,
}
