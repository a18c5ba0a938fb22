"""Tests of a board shared over TCP: one client at a time, and errors."""

import contextlib
import os
import re
import socket
import struct
import threading
import time

import pytest
from products import multiplies
from rejects import rejects

from weft import Accelerator
from weft.frames import FrameType
from weft.host import tcp
from weft.host.link import Frame
from weft.host.serial_port import SerialPort
from weft.host.tcp import TcpServer, listen
from weft.host.transport import TransportClosed, TransportError

GUARD = 600  # seconds after which a test hangs


@pytest.fixture(autouse=True)
def late(monkeypatch):
    """Allow late answers: the machine may be slow."""
    monkeypatch.setattr(tcp, "_PROBE_TIMEOUT", GUARD)


@pytest.fixture
def said():
    return []


@contextlib.contextmanager
def serving(line, said, host="localhost", timeout=GUARD):
    """A server for the board at ``line``."""
    port = SerialPort(line.path, 115200)
    server = TcpServer(port, port, listen(host), say=said.append, timeout=timeout)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(GUARD)
        assert not thread.is_alive()


@pytest.fixture
def server(line, said):
    with serving(line, said) as server:
        yield server


class Held:
    """Delays the answers of a board while ``closed``; then it gives them in order."""

    def __init__(self, line):
        self.act, self.frames, self.closed = line.act, [], False
        line.act = self

    def __call__(self, frame):
        self.frames.append(frame)
        while self.frames and not self.closed:
            self.act(self.frames.pop(0))


def when(holds):
    deadline = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(sequence, address, count):
    return Frame(FrameType.READ, sequence, struct.pack("<HH", address, count)).encode()


def test_products_over_tcp(server, said):
    for count in (1, 2):
        with Accelerator(f"tcp://localhost:{server.port}") as accelerator:
            assert multiplies(accelerator) and multiplies(accelerator)
        when(lambda count=count: len(said) == 2 * count)
    assert [text.split(" ", 1)[1] for text in said] == ["is connected", "is disconnected"] * 2


def test_rejects_a_second_client_until_the_first_leaves(server, said):
    name = f"tcp://localhost:{server.port}"
    with Accelerator(name) as accelerator:
        with pytest.raises(TransportClosed) as error:
            Accelerator(name)
        assert str(error.value).startswith(f"{name} refused the connection: 127.0.0.1:")
        assert str(error.value).endswith(
            " uses the board; if that machine is gone, the board is free again after 60 s"
        )
        assert multiplies(accelerator)
    when(lambda: said[-1].endswith("is disconnected"))
    with Accelerator(name) as accelerator:
        assert multiplies(accelerator)


def test_rejects_a_port_without_a_server():
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TransportError) as error:
        Accelerator(f"tcp://localhost:{port}")
    assert str(error.value).startswith(f"cannot connect to tcp://localhost:{port}: ")


def test_rejects_another_server(monkeypatch):
    monkeypatch.setattr(tcp, "_PROBE_TIMEOUT", 0.3)
    with socket.create_server(("localhost", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(TransportError, match=", received nothing; is the board"):
            Accelerator(f"tcp://localhost:{port}")


def test_disconnects_the_client_when_the_board_is_disconnected(server, line):
    with contextlib.closing(Accelerator(f"tcp://localhost:{server.port}")) as accelerator:
        assert multiplies(accelerator)
        line.pull()
        text = f"tcp://localhost:{server.port} was disconnected"
        with rejects(TransportClosed, text):
            multiplies(accelerator)


def test_continues_after_a_client_that_leaves_at_once(server, said, monkeypatch):
    real, left = tcp.Socket.__init__, []

    def gone(socket, connection):
        if not left:
            left.append(connection)
            raise OSError("gone")
        real(socket, connection)

    monkeypatch.setattr(tcp.Socket, "__init__", gone)
    where = "localhost", server.port
    with socket.create_connection(where), socket.create_connection(where):
        when(lambda: said)
    assert left and said[0].endswith(" is connected")


@pytest.mark.parametrize("count", [1, 3])
def test_drops_answers_to_the_previous_client(server, line, said, count, monkeypatch):
    """The pending answers have every sequence number, and other registers."""
    monkeypatch.setattr("weft.host.tcp.choice", lambda free: free[0])  # no luck
    board = Held(line)
    with socket.create_connection(("localhost", server.port)) as first:
        when(lambda: said)
        board.closed = True
        first.sendall(b"".join(read(sequence, 2, count) for sequence in range(256)))
        when(lambda: len(board.frames) == 256)
    when(lambda: said[-1].endswith("is disconnected"))
    board.closed = False
    with Accelerator(f"tcp://localhost:{server.port}") as accelerator:
        assert multiplies(accelerator)


@pytest.mark.parametrize("left", [
    b"W", read(7, 0, 1)[:-1], Frame(FrameType.COMMANDS, 7, bytes(256)).encode()[:8],
])
def test_completes_an_unfinished_frame_of_the_previous_client(server, line, said, left):
    with socket.create_connection(("localhost", server.port)) as first:
        when(lambda: said)
        first.sendall(left)
    when(lambda: said[-1].endswith("is disconnected"))
    with Accelerator(f"tcp://localhost:{server.port}") as accelerator:
        assert multiplies(accelerator)


def test_repeats_the_fence_if_the_board_drops_it(line, said):
    act, dropped = line.act, []

    def drops(frame):
        if frame.type == FrameType.READ and len(dropped) < 2:
            dropped.append(frame)
            line.say(Frame(FrameType.ACK, 0))
            # An answer that is cut short. The next bytes must not be taken for the rest of it.
            os.write(line.master, Frame(FrameType.REGISTERS, 0, bytes(1000)).encode()[:20])
        else:
            act(frame)

    line.act = drops
    with (
        serving(line, said, timeout=0.05) as server,
        Accelerator(f"tcp://localhost:{server.port}") as accelerator,
    ):
        assert multiplies(accelerator)
    assert len(dropped) == 2


def test_a_rejected_client_receives_the_reason(server, said):
    """A connection closed with unread bytes is reset, and the reason would be lost."""
    where = "localhost", server.port
    with socket.create_connection(where), socket.create_connection(where) as second:
        when(lambda: len(said) == 2)
        second.sendall(bytes(1 << 16))
        with second.makefile("rb") as file:
            assert b"uses the board" in file.read()
        second.sendall(bytes(1 << 16))  # the connection is not reset


def test_reports_a_silent_board_to_the_client(line, said):
    line.silent = True
    with serving(line, said, timeout=0.001) as server:
        name = f"tcp://localhost:{server.port}"
        with pytest.raises(TransportClosed) as error:
            Accelerator(name)
    assert str(error.value) == f"{name} refused the connection: the board does not answer"


def test_a_client_whose_bytes_the_board_does_not_answer_leaves(server, said, monkeypatch):
    """The systems keep what a client has sent before it closed, and the board would get all of it.
    """
    where = "localhost", server.port
    clock, sent = [0.0], []

    def slow(data, send=server._send):
        sent.append(len(data))
        clock[0] += 7
        send(data)

    with socket.create_connection(where) as client:
        when(lambda: said)
        monkeypatch.setattr(tcp.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(server, "_send", slow)
        with contextlib.suppress(OSError):  # the server closes the connection
            for _ in range(40):
                client.sendall(bytes(tcp._CHUNK))
    when(lambda: len(said) == 2)
    assert said[-1].endswith("is disconnected")
    # At 0, 7 to 56 seconds; and not at 63.
    assert len(sent) == 9


def test_answers_keep_a_client(server, said, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(tcp.time, "monotonic", lambda: clock[0])
    with Accelerator(f"tcp://localhost:{server.port}") as accelerator:
        for _ in range(3):
            clock[0] += 50
            assert multiplies(accelerator)
    when(lambda: len(said) == 2)


def test_sets_keepalive_for_clients_that_vanish(server, said):
    with socket.create_connection(("localhost", server.port)):
        when(lambda: said)
        held = server._client._connection
        assert held.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"
        idle, every, times, unacknowledged = (
            held.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in options
        )
    assert idle + every * times == tcp.PEER_TIMEOUT == 60
    assert unacknowledged == 60_000


def test_products_over_ipv6(line, said, has_ipv6):
    with serving(line, said, "::1") as server:
        with Accelerator(f"tcp://[::1]:{server.port}") as accelerator:
            assert multiplies(accelerator)
            name = f"tcp://[::1]:{server.port}"
            with pytest.raises(TransportClosed, match=f"^{re.escape(name)} refused the conn"):
                Accelerator(name)
    assert said[0].startswith("[::1]:")


@pytest.mark.parametrize("host", ["a..b", 300 * "a"])
def test_rejects_an_invalid_host(host):
    with pytest.raises(TransportError, match=f"^cannot listen at {host}:9: "):
        listen(host, 9)
    with pytest.raises(TransportError, match=f"^cannot connect to tcp://{host}:9: "):
        Accelerator(f"tcp://{host}:9")


def test_rejects_an_address_in_use(server):
    with pytest.raises(TransportError, match=f"^cannot listen at localhost:{server.port}: "):
        listen("localhost", server.port)
