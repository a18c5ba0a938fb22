"""MLPerf Tiny's anomaly detector, layer by layer on the simulated hardware, to the byte."""

import numpy as np
import pytest

from weft.config import Config


@pytest.mark.long
def test_network(accelerators, mlperf_tiny):
    with np.load(mlperf_tiny / "ad01_int8.npz") as file:
        network = dict(file)
    accelerator = accelerators(Config(depth=4, multiplier="fip"))
    x = network["model_in"].reshape(-1, network["L0_w"].shape[1])
    for layer in range(10):
        of = {key: network[f"L{layer}_{key}"] for key in (
            "w", "bias", "x_zp", "y_zp", "mult", "shift", "act_min", "act_max"
        )}
        x = accelerator.matmul(
            x, of["w"].T, a_zero_point=of["x_zp"], bias=of["bias"], multiplier=of["mult"],
            shift=of["shift"], zero_point=of["y_zp"], low=of["act_min"], high=of["act_max"],
        )
    assert np.array_equal(x, network["model_out_tflm"].reshape(x.shape))
