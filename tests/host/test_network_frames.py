"""The calls of a network core as frames, and the answers as reports."""

import pytest
from rejects import rejects

from weft.frames import FrameType
from weft.host.link import Frame
from weft.host.network_frames import MemoryLayout, NetworkFrames, status_of
from weft.host.transport import TransportError
from weft.network_core.descriptors import ListError, ListReport, NetworkState


class Link(NetworkFrames):
    """Keeps what is sent; ``answer`` comes back."""

    def __init__(self):
        self.sent, self.answer = [], None

    def post(self, frame_type, payload):
        self.sent.append((frame_type, payload.hex(" ", 4)))
        return 77

    def request(self, frame_type, payload, answer_type, timeout):
        assert (answer_type, timeout) == (FrameType.DATA, 5)
        self.post(frame_type, payload)
        return self.answer

    def receive_list(self, number):
        assert number == 77
        return self.answer


def test_a_write_has_its_address_its_layout_and_its_data():
    link = Link()
    link.write_memory(0x01020304, MemoryLayout(0x11, 0x22, 0x3344, 0xFFFFFF02), b"abcd")
    link.write_memory(5, MemoryLayout(), b"")
    assert link.sent == [
        (FrameType.WRITE, "04030201 11224433 02ffffff 61626364"),
        (FrameType.WRITE, "05000000 00000000 00000000"),
    ]


def test_a_read_returns_exactly_its_bytes():
    link = Link()
    link.answer = b"abc"
    assert link.read_memory(0x102, 3, 5) == b"abc"
    assert link.sent == [(FrameType.READ_MEMORY, "02010000 03000000")]
    with rejects(TransportError, "expected 4 bytes of the memory, received 3"):
        link.read_memory(0x102, 4, 5)


def test_the_end_of_a_list():
    link = Link()
    link.start_list(0x102, 7)
    assert link.sent == [(FrameType.START, "02010000 07000000")]
    assert link.list_end() is None
    link.answer = Frame(FrameType.DONE, 77, bytes.fromhex("0200 0500 39300000") + b"result")
    assert link.list_end() == ListReport(ListError.NONE, 5, b"result", 12345)
    link.answer = Frame(FrameType.ERROR, 77, b"busy")
    with rejects(TransportError, (
        "the core cannot start a list: another one runs, or the core was reset"
    )):
        link.list_end()


@pytest.mark.parametrize("status, state, error, jobs", [
    (0, NetworkState.IDLE, ListError.NONE, 0), (1, NetworkState.RUNNING, ListError.NONE, 0),
    (0xFFFF0002, NetworkState.DONE, ListError.NONE, 0xFFFF),
    (0x00030304, NetworkState.ERROR, ListError.ADDRESS, 3),
    (0x503, NetworkState.ABORTED, ListError.ABORTED, 0),
])
def test_a_status_has_the_state_the_error_and_the_job(status, state, error, jobs):
    assert status_of(status, 9) == (state, ListReport(error, jobs, b"", 9))
