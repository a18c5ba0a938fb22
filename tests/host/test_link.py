"""Tests of damaged frames, and of the framed transport with a peer that misbehaves."""

import os
import threading
import time
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rejects import rejects

from weft.commands import Status
from weft.frames import FrameType
from weft.host import link
from weft.host.link import MAX_PIPE_PAYLOAD, Frame, FrameDecoder, FramedTransport, FramingError
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout

GUARD = 600  # seconds after which a test hangs
FRAMES = [Frame(1, 0, b"abc"), Frame(0xFF, 255), Frame(0x81, 7, b"WFWF\x00W")]


def test_encodes_to_the_byte():
    body = bytes.fromhex("82 05 03000000") + b"xyz"
    want = b"WF" + body + zlib.crc32(body).to_bytes(4, "little")
    assert Frame(FrameType.REGISTERS, 5, b"xyz").encode() == want


def test_rejects_a_payload_beyond_the_limit():
    text = f"payload must be at most {MAX_PIPE_PAYLOAD} bytes, not {MAX_PIPE_PAYLOAD + 1}"
    with pytest.raises(ValueError, match=f"^{text}$"):
        Frame(1, 0, bytes(MAX_PIPE_PAYLOAD + 1)).encode()


@settings(derandomize=True)
@given(cuts=st.lists(st.integers(1, 9), min_size=1))
def test_decodes_pieces_of_any_size(cuts):
    data = b"".join(frame.encode() for frame in FRAMES)
    decoder, found, at = FrameDecoder(), [], 0
    while at < len(data):
        step = cuts[at % len(cuts)]
        found += decoder.feed(data[at : at + step])
        at += step
    assert found == FRAMES


@pytest.mark.parametrize("noise", [b"\0", b"W", b"F", b"WF", b"WFWFWF", b"WW" * 9, b"\xff" * 40])
def test_finds_the_next_frame_after_noise(noise):
    data = FRAMES[0].encode() + noise + b"".join(f.encode() for f in FRAMES) * 2
    found = FrameDecoder(limit=64).feed(data)
    assert [item for item in found if isinstance(item, Frame)] == [FRAMES[0], *FRAMES * 2]
    assert len([item for item in found if isinstance(item, FramingError)]) == 1


def test_reports_each_stretch_of_noise_once():
    found = FrameDecoder().feed((b"\0\0" + FRAMES[0].encode()) * 2)
    assert [type(item) for item in found] == [FramingError, Frame, FramingError, Frame]


def test_reports_every_damaged_byte():
    good, after = FRAMES[2].encode(), FRAMES[0].encode()
    for at in range(len(good)):
        for bit in range(8):
            data = bytearray(good)
            data[at] ^= 1 << bit
            # A larger length includes the bytes that follow, until its checksum is found wrong.
            found = FrameDecoder(limit=64).feed(bytes(data) + after + bytes(64))
            assert found[0].text.startswith("a frame")
            assert found[1] == FRAMES[0]


def test_describes_the_error():
    frame = FRAMES[0].encode()
    (found,) = FrameDecoder().feed(b"\x01\x02\x03")
    assert found == FramingError("a frame must start with 5746, not 0102")
    crc = int.from_bytes(frame[-4:], "little")
    wrong = frame[:-4] + (crc ^ 1).to_bytes(4, "little")
    text = f"a frame's CRC must be 0x{crc:08x}, not 0x{crc ^ 1:08x}"
    assert FrameDecoder().feed(wrong) == [FramingError(text)]
    long = b"WF\x01\x00" + (MAX_PIPE_PAYLOAD + 1).to_bytes(4, "little")
    text = f"a frame's payload must be at most {MAX_PIPE_PAYLOAD} bytes, not {MAX_PIPE_PAYLOAD + 1}"
    assert FrameDecoder().feed(long) == [FramingError(text)]


class Peer:
    """The other end of the two pipes of a transport."""

    def __init__(self):
        read, self.out = os.pipe()
        self.inp, write = os.pipe()
        self.transport = FramedTransport(os.fdopen(read, "rb"), os.fdopen(write, "wb"))
        self.decoder = FrameDecoder()

    def next(self):
        while True:
            found = self.decoder.feed(os.read(self.inp, 1 << 16))
            if found:
                assert len(found) == 1
                return found[0]

    def send(self, *frames):
        os.write(self.out, b"".join(f if isinstance(f, bytes) else f.encode() for f in frames))

    def close(self):
        for end in (self.out, self.inp):
            if end is not None:
                os.close(end)
        self.out = self.inp = None


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.close()
    peer.transport.close()


def results(sequence, tag=1, last=1, status=0, data=b""):
    return Frame(0x81, sequence, tag.to_bytes(2, "little") + bytes([last, status]) + data)


def test_sends_commands_in_one_frame(peer):
    peer.transport.send_words(b"x" * 1000)
    assert peer.next() == Frame(FrameType.COMMANDS, 1, b"x" * 1000)


def test_receives_packets(peer):
    peer.send(results(9, 0x1234, 0, 0, b"data"), results(10, 5, 1, 2), results(11))
    assert peer.transport.receive(GUARD) == Packet(0x1234, False, Status(0), b"data")
    assert peer.transport.receive(GUARD) == Packet(5, True, Status.REJECTED, b"")
    assert peer.transport.receive(GUARD) == Packet(1, True, Status(0), b"")


def in_thread(call):
    out = []

    def run():
        try:
            out.append(call())
        except TransportError as error:
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, out


def test_skips_late_answers_to_earlier_requests(peer):
    thread, out = in_thread(lambda: peer.transport.read(3, 2, GUARD))
    assert peer.next() == Frame(FrameType.READ, 1, b"\x03\0\x02\0")
    peer.send(Frame(0x82, 0, b"old."), Frame(0x83, 1), results(0))
    peer.send(Frame(0x82, 1, b"\1\0\0\0\2\0\0\0"))
    thread.join(GUARD)
    assert out == [[1, 2]]
    assert peer.transport.receive(GUARD).tag == 1


def test_rejects_registers_of_another_count(peer):
    thread, out = in_thread(lambda: peer.transport.read(3, 2, GUARD))
    peer.next()
    peer.send(Frame(0x82, 1, b"1234"))
    thread.join(GUARD)
    assert str(out[0]) == "expected 8 bytes for 2 registers, received 4"


def test_aborts(peer):
    thread, out = in_thread(lambda: peer.transport.abort(GUARD))
    assert peer.next() == Frame(FrameType.ABORT, 1)
    peer.send(Frame(0x83, 1))
    thread.join(GUARD)
    assert out == [None]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda t: t.receive(0.05), "results"),
        (lambda t: t.read(0, 1, 0.05), "REGISTERS in answer to READ"),
        (lambda t: t.abort(0.05), "ABORTED in answer to ABORT"),
    ],
)
def test_times_out(peer, call, what):
    with rejects(TransportTimeout, f"no {what} within 0.05 s"):
        call(peer.transport)


def test_waits_while_bytes_move(peer, monkeypatch):
    """Results arrive every 500 simulated seconds."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(link, "time", clock)
    thread, out = in_thread(lambda: peer.transport.abort(GUARD))
    assert peer.next() == Frame(FrameType.ABORT, 1)
    for sequence in range(8):
        clock.now += 500
        before = peer.transport.received
        peer.send(results(sequence))
        while peer.transport.received == before:
            time.sleep(0.001)
    peer.send(Frame(0x83, 1))
    thread.join(GUARD)
    assert out == [None]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ([Frame(0xFF, 3, "bad \u00e9".encode())], "the core rejected a frame: bad \u00e9"),
        ([Frame(0x07, 3)], "unexpected frame from the core: type 0x07, 0 bytes"),
        ([Frame(0x81, 3, b"123")],
         "unexpected frame from the core: type 0x81, 3 bytes"),
        ([b"junk", results(0)],
         "invalid data from the core: a frame must start with 5746, not 6a75"),
        ([results(4), results(6)], "result frames were lost: expected number 5, received 6"),
    ],
)
def test_raises_each_error_once(peer, sent, text):
    peer.send(*sent)
    with rejects(TransportError, text):
        while True:
            peer.transport.receive(GUARD)
    peer.send(results(sent[-1].sequence + 1, tag=99))
    while peer.transport.receive(GUARD).tag != 99:
        pass


def test_does_not_block_on_a_full_pipe(peer):
    peer.transport.send_words(bytes(1 << 22))
    peer.send(results(0))
    assert peer.transport.receive(GUARD).tag == 1


@pytest.mark.parametrize(
    "call", [lambda t: t.receive(GUARD), lambda t: t.send_words(b"x"), lambda t: t.abort(GUARD)]
)
def test_reports_the_end_of_the_pipe(peer, call):
    peer.close()
    with rejects(TransportClosed, "the other end closed the pipe unexpectedly"):
        while True:
            call(peer.transport)
            time.sleep(0.001)


def test_delivers_packets_received_before_the_end(peer):
    peer.send(results(0))
    peer.close()
    assert peer.transport.receive(GUARD).tag == 1
    with pytest.raises(TransportClosed):
        peer.transport.receive(GUARD)


def test_uses_the_reason_of_a_subclass(peer):
    peer.transport.explain = lambda: "the model must run, not end with exit code 3"
    peer.close()
    with rejects(TransportClosed, "the model must run, not end with exit code 3"):
        peer.transport.receive(GUARD)


def test_wakes_a_waiter_on_close(peer):
    thread, out = in_thread(lambda: peer.transport.receive(GUARD))
    time.sleep(0.05)
    closing, _ = in_thread(peer.transport.close)
    thread.join(GUARD)
    assert str(out[0]) == "the transport is closed"
    peer.close()
    closing.join(GUARD)
    peer.transport.close()


def test_close_ends_the_other_side(peer):
    thread, _ = in_thread(peer.transport.close)
    assert os.read(peer.inp, 10) == b""
    peer.close()
    thread.join(GUARD)
    with rejects(TransportClosed, "the transport is closed"):
        peer.transport.send_words(b"x")
