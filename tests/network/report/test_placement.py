"""The placement line."""

from dataclasses import replace

import numpy as np
import pytest
from network_programs import TARGET, make_program

from weft.config import Config
from weft.network.report.placement import placement_line
from weft.network.target import NetworkTarget

START = (
    "tiny: 3 of 5 operators on Weft (100 % of 4,400 MAC), 2 on the host (AVERAGE_POOL_2D, SOFTMAX);"
)


def test_line(program):
    # 1,078 cycles at 100 MHz; 3,652 bytes to the board at 1 Mbaud.
    assert placement_line(program) == (
        f"{START} equal to TFLite Micro in mode tflite; a-board: 0.01 ms core, 36.5 ms wire"
    )


@pytest.mark.parametrize("mode, oracle", [("single", "LiteRT"), ("onnx", "onnxruntime")])
def test_names_the_oracle_of_the_mode(program, mode, oracle):
    line = placement_line(replace(program, mode=mode))
    assert f"; equal to {oracle} in mode {mode}; " in line


def test_without_a_clock_it_has_cycles():
    line = placement_line(make_program(NetworkTarget("mine", TARGET.config)))
    assert line.endswith("; mine: 1,078 cycles")


def test_a_share_below_one_is_never_100_percent(program):
    host = replace(program.steps[2], macs=1)
    steps = (replace(program.steps[0], macs=10**9), *program.steps[1:2], host, *program.steps[3:])
    assert "(over 99.99 % of 1,000,001,521 MAC)" in placement_line(replace(program, steps=steps))


def test_a_bf16_core_is_close_to_the_runtime(program):
    target = NetworkTarget("floats", Config(dtype="bf16", a_words=256, b_words=256))
    line = placement_line(replace(make_program(target), mode="onnx"))
    assert "; products in bfloat16, so close to onnxruntime but not equal; floats: " in line


def test_float_products_on_the_host_are_close_to_the_runtime(program):
    tensors = tuple(replace(tensor, dtype=np.dtype(np.float32)) for tensor in program.tensors)
    line = placement_line(replace(program, tensors=tensors))
    assert "; products in float32, so close to TFLite Micro but not always equal; " in line


def test_a_core_without_work(program):
    steps = (program.steps[2], program.steps[4])
    line = placement_line(replace(program, steps=steps, operators=("AVERAGE_POOL_2D", "SOFTMAX")))
    assert line == (
        "tiny: 0 of 2 operators on Weft, 2 on the host (AVERAGE_POOL_2D, SOFTMAX);"
        " equal to TFLite Micro in mode tflite; a-board: the core is not used"
    )
