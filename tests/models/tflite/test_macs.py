"""The MAC of operators that TFLite Micro computes."""

from types import SimpleNamespace

import pytest

from weft.models.tflite.importer import macs_of

SHAPES = {  # shapes of the inputs and the output of a small operator, and its MAC by hand
    "CONV_2D": ([(1, 9, 9, 4), (6, 3, 3, 4)], (1, 7, 7, 6), 49 * 6 * 36),
    "DEPTHWISE_CONV_2D": ([(2, 9, 9, 4), (1, 3, 3, 8)], (2, 7, 7, 8), 2 * 49 * 9 * 8),
    "TRANSPOSE_CONV": ([(4,), (6, 3, 3, 4), (1, 5, 5, 4)], (1, 10, 10, 6), 100 * 6 * 36),
    "FULLY_CONNECTED": ([(3, 5, 4), (7, 20)], (3, 7), 3 * 7 * 20),
    "BATCH_MATMUL": ([(2, 3, 4), (2, 4, 5)], (2, 3, 5), 2 * 3 * 4 * 5),
    "SVDF": ([(2, 10), (8, 10), (8, 6)], (2, 4), 2 * (80 + 48)),
    "SOFTMAX": ([(1, 9)], (1, 9), 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_macs(name):
    inputs, y, macs = SHAPES[name]
    tensors = [SimpleNamespace(shape=shape) for shape in (*inputs, y)]
    operator = SimpleNamespace(
        name=name, inputs=tuple(range(len(inputs))), outputs=(len(inputs),)
    )
    assert macs_of(operator, tensors) == macs


def test_an_lstm_multiplies_all_matrices_at_each_step():
    """Weights of the input gate are absent (CIFG); there is a projection."""
    shapes = [(2, 5, 6)] + [()] + [(8, 6)] * 3 + [()] + [(8, 4)] * 3 + [()] * 7 + [(4, 8)]
    tensors = [SimpleNamespace(shape=shape) for shape in (*shapes, (2, 5, 4))]
    inputs = tuple(-1 if shape == () else n for n, shape in enumerate(shapes))
    operator = SimpleNamespace(
        name="UNIDIRECTIONAL_SEQUENCE_LSTM", inputs=inputs, outputs=(len(shapes),)
    )
    assert macs_of(operator, tensors) == 10 * (3 * 48 + 3 * 32 + 32)
