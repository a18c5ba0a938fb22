"""Values of tensors as bytes of maps: pixels, whole vectors, uint8."""

import numpy as np
import pytest
from graphs import tensor
from network_cores import network_core_config

from weft.models.network_core.jobs import PlacedMap
from weft.models.network_core.layers import InputForm
from weft.models.network_core.map_pitches import MapPitches
from weft.models.network_core.program import NetworkCoreInput
from weft.models.network_core.runners import GoldenRunner
from weft.models.network_core.tensor_maps import input_writes, map_values

CHIP = network_core_config(3, 4, 4, 2)


@pytest.mark.parametrize("channels, pitch, count", [
    (5, 3, 1), (255, 64, 1),  # pixels in one call
    (5, 256, 6), (256, 64, 6),  # a call for each pixel
])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_values_return(channels, pitch, count, dtype):
    vectors = -(-channels // 4)
    row = 3 * pitch + 2
    pitches = MapPitches(pitch, row, row + 2 * pitch + vectors)
    place = PlacedMap(7, pitches, 2, 3, channels)
    entry = NetworkCoreInput(InputForm(0, 2, 3, channels), place)
    values = np.random.default_rng(1).integers(0, 256, (1, 2, 3, channels)).astype(np.uint8)
    values, first = values.view(dtype), 11
    runner = GoldenRunner(CHIP)
    writes = list(input_writes(entry, values, np.dtype(dtype), CHIP, first))
    assert len(writes) == count
    for write in writes:
        runner.write(**write)
    start = (7 + first) * 4
    data = runner.memory[start : start + pitches.vectors * 4].tobytes()
    found = map_values(data, place, tensor((1, 2, 3, channels), dtype), 4)
    np.testing.assert_array_equal(found, values)
    assert runner.memory[start] == values.reshape(-1).view(np.uint8)[0] ^ (
        128 if dtype == np.uint8 else 0
    )
