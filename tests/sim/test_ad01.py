"""MLPerf Tiny's anomaly detector, layer by layer on the simulated hardware, to the byte."""

from pathlib import Path

import numpy as np
import pytest

from weft.config import Config

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "ad01_int8.npz"
LAYERS = 10
CONFIGS = {
    "y": Config(depth=4, multiplier="fip"),
    "y_single": Config(rows=4, cols=4, depth=4, requantize="single", lanes=2),
}


@pytest.fixture(scope="module")
def network():
    if not DATA.is_file():
        pytest.skip(f"{DATA} is not there: the anomaly detector is not part of the project")
    with np.load(DATA) as file:
        return dict(file)


@pytest.mark.parametrize("result, config", CONFIGS.items(), ids=CONFIGS)
@pytest.mark.parametrize("layer", range(LAYERS))
def test_layer(network, accelerators, result, config, layer):
    of = {key: network[f"L{layer}_{key}"] for key in (
        "x", "w", "bias", "x_zp", "w_zp", "y_zp", "mult", "shift", "act_min", "act_max", result
    )}
    y = accelerators(config).matmul(
        of["x"], of["w"].T, a_zero_point=of["x_zp"], b_zero_point=of["w_zp"], bias=of["bias"],
        multiplier=of["mult"], shift=of["shift"], zero_point=of["y_zp"],
        low=of["act_min"], high=of["act_max"],
    )
    assert y.dtype == of[result].dtype == np.int8
    assert np.array_equal(y, of[result])


def test_network(network, accelerators):
    accelerator = accelerators(CONFIGS["y"])
    x = network["model_in"].reshape(-1, network["L0_w"].shape[1])
    for layer in range(LAYERS):
        of = {key: network[f"L{layer}_{key}"] for key in (
            "w", "bias", "x_zp", "y_zp", "mult", "shift", "act_min", "act_max"
        )}
        x = accelerator.matmul(
            x, of["w"].T, a_zero_point=of["x_zp"], bias=of["bias"], multiplier=of["mult"],
            shift=of["shift"], zero_point=of["y_zp"], low=of["act_min"], high=of["act_max"],
        )
    assert np.array_equal(x, network["model_out_tflm"].reshape(x.shape))
