"""Tests at the pins of the serial port, in cocotb: make sim. `first` is the one of WAVES=1."""

from pathlib import Path

import cocotb
import numpy as np
from cocotb.task import bridge

import weft
from weft.designs import design_from_toml
from weft.frames import FrameType
from weft.host.link import Frame
from weft.network_core.register_map import describe
from weft.sim.bench.board_pins import BoardPins

HERE = Path(__file__).resolve().parent
FILE = next(path for path in HERE.glob("network.*") if path.suffix in (".tflite", ".onnx"))


@cocotb.test()
async def first(dut):
    """The registers describe the design."""
    pins = await BoardPins.start(dut)
    words = describe(design_from_toml(HERE / "design.toml"))

    def read():
        pins.send(Frame(FrameType.READ, 1, b"\0\0" + len(words).to_bytes(2, "little")))
        return pins.receive(20_000).payload

    assert np.frombuffer(await bridge(read)(), "<u4").tolist() == words


@cocotb.test()
async def an_inference_equals_the_golden_model(dut):
    """The network, with an input of random values."""
    pins = await BoardPins.start(dut)
    program = weft.load(FILE).compile(HERE / "design.toml")
    tensor = program.tensors[program.inputs[0]]
    x = np.random.default_rng(1).integers(-100, 100, tensor.shape).astype(tensor.dtype)
    with program.open("golden") as golden:
        wanted = golden(x)
    y = await bridge(pins.infer)(program, x)
    assert np.array_equal(y, wanted)
