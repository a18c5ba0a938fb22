"""A simulated board at its USB pins, and the ideal host of `tools.usb_bench`."""

import pytest
from network_cores import small_network_core

from tools.usb_bench import LIST_END, IdealHost, finish
from verif.usb_host import UsbError
from weft.frames import FrameType
from weft.network_core.descriptors import ListError, NetworkState, split
from weft.sim.usb_board import UsbWire

CORE = small_network_core(
    1, 2, 2, words=64, b_words=4, lines=4, read_vectors=2, requantize="tflite", multiplier="plain"
)


@pytest.mark.long
@pytest.mark.parametrize(("high", "microseconds"), [
    (True, (5, 25)), pytest.param(False, (80, 300), marks=pytest.mark.long),
])
def test_writes_and_a_list_at_the_pins(high, microseconds):
    """The memory is zero, so the list ends at once: the time is that of the bus and the link."""
    wire = UsbWire(CORE, high=high, clock=100)
    host = IdealHost(wire, high=high)
    finish(host.attach())
    start = wire.time
    address = split(20, CORE.banks).to_bytes(4, "little")
    write, begin = (FrameType.WRITE, address + bytes(8) + bytes(64)), (FrameType.START, bytes(8))
    done, = finish(host.play([write, begin, None, LIST_END]))
    assert done[:4] == bytes([NetworkState.ERROR, ListError.OPCODE, 0, 0])
    assert microseconds[0] < 1e6 * (wire.time - start) < microseconds[1]
    assert (host.sent, host.received, host.naks) == (88 + 20, 12 + 12 + 20, 0)
    with pytest.raises(UsbError, match="accepted no packet in 60 tries"):
        host.usb.address = 9  # of no device
        finish(host.usb.out(1, b"x"))
    wire.close()
