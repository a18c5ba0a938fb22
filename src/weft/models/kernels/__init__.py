"""Operators that the host computes, exactly, in numpy: one table from a kernel's name to it.

A kernel without a prefix is the same in all runtimes. One with a prefix, such as ``tflite.add``,
follows the numerics of that runtime. ``tflite.model`` and ``onnx.model`` run the runtime itself on
a sub-model; they are stateful. A recurrent kernel asks its caller for products.
"""

from collections.abc import Generator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from weft.models.errors import ModelError
from weft.models.kernels import common, litert, onnx, recurrent, tflite

__all__ = ["KERNELS", "RECURRENT", "STATEFUL", "recurrence", "run"]

# Each is function(inputs, attributes) -> outputs; a stateful one is function(inputs, attributes,
# state).
KERNELS = {
    **common.KERNELS, **litert.KERNELS, **onnx.KERNELS, **recurrent.KERNELS, **tflite.KERNELS,
    "onnx.model": common.onnx_model, "tflite.model": common.tflite_model,
}
# Each is function(inputs, attributes, state, mode) -> generator, as `recurrence` describes it.
RECURRENT = {**onnx.RECURRENT, **recurrent.RECURRENT}
# Names of the kernels that keep something from run to run.
STATEFUL = frozenset({
    "litert.lstm", "litert.svdf", "onnx.model", "tflite.float_lstm", "tflite.lstm", "tflite.model",
    "tflite.svdf",
})


def run(
    kernel: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, Any],
    state: MutableMapping | None = None,
) -> list[np.ndarray]:
    """The outputs of one operator.

    Parameters
    ----------
    kernel : str
        A name in `KERNELS`.
    inputs : sequence of array or None
        Values of the node's inputs, constants included; None where an optional one is absent.
    attributes : mapping
        `weft.models.ir.Host.attributes`.
    state : dict, optional
        What a stateful kernel keeps from run to run. The caller keeps one for each node, empty at
        first. Without it the operator starts anew.

    Returns
    -------
    list of array

    Raises
    ------
    ModelError
        If no kernel has the name.
    """
    try:
        function = KERNELS[kernel]
    except KeyError:
        raise ModelError(f"kernel must be one of {', '.join(KERNELS)}, not {kernel!r}") from None
    if kernel in STATEFUL:
        return function(inputs, attributes, {} if state is None else state)
    return function(inputs, attributes)


def recurrence(
    kernel: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, Any],
    state: MutableMapping, mode: str,
) -> Generator[tuple[int, np.ndarray], np.ndarray, list[np.ndarray]]:
    """The computation of a recurrent layer, as a generator that asks for its products.

    It gives the place of a product in `weft.models.ir.Recurrence.products`, and its operand
    [M, K]; it takes the results [M, N]; it returns the outputs of the node. For all inputs it asks
    for the same products, in the same order.

    Parameters
    ----------
    kernel : str
        A name in `RECURRENT`.
    inputs, attributes
        As for `run`.
    state : dict
        What a stateful kernel keeps from run to run.
    mode : str
        Rounding mode of the network: ``tflite``, ``single`` or ``onnx``.

    Raises
    ------
    ModelError
        If no kernel has the name.
    """
    if kernel not in RECURRENT:
        raise ModelError(f"kernel must be one of {', '.join(RECURRENT)}, not {kernel!r}")
    return RECURRENT[kernel](inputs, attributes, state, mode)
