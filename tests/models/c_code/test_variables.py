"""C code of networks whose variables stay in the memory of a core."""

from dataclasses import replace

import numpy as np
import pytest
from c_network_driver import LoadedChipNetwork
from lstm_files import lstm
from network_cores import ROW, SIMULATED
from streaming_files import FRAME, streaming_file, svdf_file
from tflite_files import runner
from tiers import quick

import weft
from weft.models.c_code import network_core_c_files
from weft.models.errors import ModelError

CORE = replace(SIMULATED, lstm=True)
KINDS = "variables", "svdf", "lstm", "svdf of 16 bits"
TIMEOUT, NULL, REFUSED, NOT_LOADED = -2, -3, -5, -11


@pytest.fixture(scope="module", params=quick(1, KINDS))
def stream(request):
    """A file, inputs, and their outputs in TFLite Micro."""
    rng = np.random.default_rng(1)
    if request.param == "variables":
        data, shape = streaming_file(rng), FRAME
    elif request.param == "svdf":
        data, shape = svdf_file(rng, 10, 2, 5, -11, 100), (1, 13)
    elif request.param == "svdf of 16 bits":
        data, shape = svdf_file(rng, 10, 2, 5, -11, 0, kind="int16"), (1, 13)
    else:
        data, shape = lstm(rng, 1, 2), (1, 2, 6)
    x = rng.integers(-128, 128, (12, *shape)).astype(np.int8)
    run = runner(data)
    return data, x, [run(row)[0] for row in x]


@pytest.mark.parametrize("config, prefix", [
    (CORE, "weft"), pytest.param(ROW, "mm", marks=pytest.mark.slow),
])
def test_a_stream(stream, tmp_path, config, prefix):
    data, x, expected = stream
    if not config.int16 and weft.load(data, "wake").compile(config).host:
        pytest.skip("the core has no values of 16 bits")
    network = LoadedChipNetwork(tmp_path, weft.load(data, "wake").compile(config), prefix=prefix)
    run, reset = network, lambda: network.driver.network(f"{network.name}_reset")

    def same(rows, wanted):
        for row, y in zip(rows, wanted, strict=True):
            error, found = run(row)
            assert error == 0
            np.testing.assert_array_equal(found, y)

    assert reset() == NOT_LOADED
    assert network.load() == 0
    same(x, expected)
    assert reset() == 0
    same(x[:4], expected[:4])
    assert network.start(x[4])[0] == 0 and reset() == REFUSED
    while network.finish() == 1:
        pass
    same(x[5:8], expected[5:8])
    network.device.stuck = "list_busy"
    assert run(x[8])[0] == TIMEOUT and run(x[8])[0] == NOT_LOADED == reset()
    network.device.stuck = ""
    assert network.load() == 0
    same(x[:4], expected[:4])
    assert getattr(network.driver.lib, f"{network.name}_reset")(None) == NULL
    assert f"{network.name}_reset() give them their first values" in network.header


@pytest.mark.parametrize("data, message", [
    (streaming_file(np.random.default_rng(1)), "variable frames: no C code: C code keeps no"),
    (svdf_file(np.random.default_rng(1), 4, 1, 3, 0, 0), "C code has no operators with a state"),
])
def test_rejects_variables_of_the_host(data, message):
    program = weft.load(data, "wake").compile(SIMULATED, activations=True)
    with pytest.raises(ModelError, match=message):
        network_core_c_files(program)
