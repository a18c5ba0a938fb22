"""The bench of a serial line, on a wire that leads back."""

import struct
import zlib

import pytest

from weft.host.link import Frame
from weft.sim.gates import GateSim, GateSimError, build_model
from weft.sim.gates.simulator import QUIET

ECHO = "module gates (input wire clk, rst, rx, output wire tx); assign tx = rx; endmodule\n"


@pytest.fixture(scope="module")
def echo():
    return build_model("echo", ECHO)


class Raw:
    """Bytes that are sent as they are."""

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
        assert (gates.sent, gates.heard) == (size, size)
        assert gates.cycles - before >= size * 10 * divisor


def test_silence_ends(echo):
    with GateSim(echo, divisor=4, seed=1) as gates:
        message = f"^a frame must come, not {QUIET:,} cycles without a"
        with pytest.raises(GateSimError, match=message):
            gates.receive()


def test_damage_is_told(echo):
    wrong = Frame(1, 7, b"abc").encode()[:-4] + bytes(4)
    crc = zlib.crc32(struct.pack("<BBI", 1, 7, 3) + b"abc")
    with GateSim(echo, divisor=4, seed=1) as gates:
        gates.send(Raw(wrong))
        message = f"^a frame's CRC must be 0x{crc:08x}, not 0x00000000"
        with pytest.raises(GateSimError, match=message):
            gates.receive()


def test_a_line_that_is_low_is_told():
    stuck = build_model("stuck", ECHO.replace("tx = rx", "tx = 0"))
    with GateSim(stuck, divisor=4, seed=1) as gates:
        with pytest.raises(GateSimError, match="^a byte must start with 0 and end with 1, not"):
            gates.receive()
