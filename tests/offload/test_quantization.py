"""Float arrays as int8 values with a scale."""

import numpy as np
import pytest

from weft.offload.quantization import StaticWeights, quantized


def test_values_and_scales_of_rows():
    found = quantized(np.float32([[1, -2, 0.5], [0, 0, 0], [127, 3.5, -4.5]]), (-1,))
    assert found.scale.tolist() == [[np.float32(2) / np.float32(127)], [1], [1]]
    # 63.5, -127 and 31.75 of the first row; halves become even.
    assert found.values.tolist() == [[64, -127, 32], [0, 0, 0], [127, 4, -4]]
    assert found.values.dtype == np.int8 and found.scale.dtype == np.float32


def test_the_range_is_symmetric_for_subnormal_values():
    """The scale of a subnormal peak has few digits: a quotient may exceed 127."""
    tiny = np.float32(1e-45)
    found = quantized(np.float32([[190, -190]]) * tiny, (-1,))
    assert found.values.tolist() == [[127, -127]]
    assert quantized(np.float32([[1, -1]]) * tiny, (-1,)).values.tolist() == [[0, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rejects_values_that_are_not_finite(bad):
    with pytest.raises(ValueError, match=f"operands must be finite to become int8, not {bad}"):
        quantized(np.float32([[1, bad]]), (-1,))


def test_weights_are_converted_again_after_a_change():
    seen = []

    def convert(array):
        seen.append(array.copy())
        return quantized(array, (-1,))

    static = StaticWeights(convert)
    weights = np.float32([[1, 2]])
    assert static(weights) is static(weights.copy()) and len(seen) == 1
    weights[0, 0] = -1  # the array itself changes
    assert static(weights).values.tolist() == [[-64, 127]] and len(seen) == 2
    static(weights.reshape(2, 1))
    assert len(seen) == 3
    static(np.float32([[0.0], [2]]))
    static(np.float32([[-0.0], [2]]))
    assert len(seen) == 5
