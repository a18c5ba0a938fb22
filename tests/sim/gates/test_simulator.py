"""`GateSim` with a loopback in place of a netlist."""

import struct
import zlib

import pytest

from weft.host.link import Frame
from weft.sim.gates import GateSim, GateSimError, build_model
from weft.sim.gates.gate_test import TIMEOUT_CYCLES

ECHO = "module gates (input wire clk, rst, rx, output wire tx); assign tx = rx; endmodule\n"


@pytest.fixture(scope="module")
def echo():
    return build_model("echo", ECHO)


class Raw:
    """A frame that is sent without encoding."""

    def __init__(self, data):
        self.data = data

    def encode(self):
        return self.data


@pytest.mark.parametrize("divisor", [4, 7, 12])
def test_frames_come_back(echo, divisor):
    frames = [Frame(1, 7, bytes(range(256))), Frame(2, 8)]
    with GateSim(echo, divisor=divisor, seed=1) as gates:
        before = gates.cycles
        for frame in frames:
            gates.send(frame)
        assert [gates.receive(), gates.receive()] == frames
        size = sum(len(frame.encode()) for frame in frames)
        assert (gates.sent, gates.received) == (size, size)
        assert gates.cycles - before >= size * 10 * divisor


def test_reports_a_timeout(echo):
    with GateSim(echo, divisor=4, seed=1) as gates:
        message = f"^expected a frame, but no byte in {TIMEOUT_CYCLES:,} cycles$"
        with pytest.raises(GateSimError, match=message):
            gates.receive()


def test_reports_a_damaged_frame(echo):
    wrong = Frame(1, 7, b"abc").encode()[:-4] + bytes(4)
    crc = zlib.crc32(struct.pack("<BBI", 1, 7, 3) + b"abc")
    with GateSim(echo, divisor=4, seed=1) as gates:
        gates.send(Raw(wrong))
        message = f"^a frame's CRC must be 0x{crc:08x}, not 0x00000000"
        with pytest.raises(GateSimError, match=message):
            gates.receive()


@pytest.mark.slow
def test_reports_a_line_that_is_always_low():
    stuck = build_model("stuck", ECHO.replace("tx = rx", "tx = 0"))
    with GateSim(stuck, divisor=4, seed=1) as gates:
        with pytest.raises(GateSimError, match="^framing error: a byte must start"):
            gates.receive()
