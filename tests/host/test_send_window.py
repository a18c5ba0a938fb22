"""Tests of the send window: order, flow control and retransmission."""

import pytest

from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import FrameDecoder, SendWindow


@pytest.fixture
def window():
    window = SendWindow(timeout=1.0)
    window.start(254)
    window.add(bytes([n for n in range(5) for _ in range(MAX_PAYLOAD)]) + b"end!")
    return window


def sent(window, now):
    """The sequence numbers of the frames that the window sends at time ``now``."""
    found = []
    while (data := window.next_frame(now)) is not None:
        [frame] = FrameDecoder().feed(data)
        assert frame.type == FrameType.COMMANDS
        found.append(frame.sequence)
    return found


def test_sends_all_in_order(window):
    data, now = [], 0.0
    while (frame := window.next_frame(now)) is not None:
        [frame] = FrameDecoder().feed(frame)
        data.append((frame.sequence, frame.payload))
        assert window.acknowledge(frame.sequence, now)
    assert [number for number, _ in data] == [254, 255, 0, 1, 2, 3]
    words = bytes(n for n in range(5) for _ in range(MAX_PAYLOAD)) + b"end!"
    assert b"".join(payload for _, payload in data) == words
    assert window.time_left(now) is None


def test_waits_for_acknowledgements(window):
    assert sent(window, 0) == [254, 255]
    assert sent(window, 0.5) == []
    assert window.time_left(0.5) == 0.5
    assert window.acknowledge(254, 0.6)
    assert sent(window, 0.6) == [0]
    assert window.acknowledge(0, 0.7)  # the ACK of 255 was lost
    assert sent(window, 0.7) == [1, 2]


def test_retransmits_after_the_timeout(window):
    assert sent(window, 0) == [254, 255]
    assert window.acknowledge(254, 0.5)
    assert sent(window, 0.5) == [0]
    assert sent(window, 1.49) == []
    assert sent(window, 1.5) == [255, 0]
    assert window.retries == 1
    assert sent(window, 2.5) == [255, 0]
    assert window.retries == 2
    assert window.acknowledge(0, 2.6)
    assert window.retries == 0


def test_retransmits_after_go_back(window):
    assert sent(window, 0) == [254, 255]
    window.go_back()
    assert sent(window, 0.1) == [254, 255]
    window.go_back()
    window.go_back()  # nothing is on its way: it tells nothing new
    assert window.retries == 2


@pytest.mark.parametrize("number", [253, 252, 0, 100])
def test_ignores_duplicate_acknowledgements(window, number):
    assert sent(window, 0) == [254, 255]
    assert not window.acknowledge(number, 0.5)
    assert sent(window, 0.99) == []
    assert sent(window, 1.0) == [254, 255]


def test_accepts_a_late_acknowledgement(window):
    assert sent(window, 0) == [254, 255]
    window.go_back()
    assert window.acknowledge(255, 0.2)
    assert sent(window, 0.2) == [0, 1]
    assert not window.acknowledge(255, 0.3)


def test_start_discards_all_words(window):
    assert sent(window, 0) == [254, 255]
    window.start(7)
    assert not window.acknowledge(254, 0.1)
    assert sent(window, 5) == [] and window.time_left(5) is None
    window.add(b"more")
    assert sent(window, 6) == [7]
