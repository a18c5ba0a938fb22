"""A board on TCP: the relay, its clients one at a time, and what goes wrong between them."""

import contextlib
import socket
import threading
import time

import numpy as np
import pytest

from weft import Accelerator
from weft.host import tcp
from weft.host.relay import Relay
from weft.host.serial_port import SerialPort
from weft.host.transport import TransportClosed, TransportError


@pytest.fixture
def said():
    return []


@pytest.fixture
def relay(line, said):
    port = SerialPort(line.path, 115200)
    relay = Relay(port, port, say=said.append)
    thread = threading.Thread(target=relay.serve)
    thread.start()
    yield relay
    relay.close()
    thread.join(5)
    assert not thread.is_alive()


def right(accelerator):
    a = np.arange(-60, 60, dtype=np.int8).reshape(12, 10)
    return np.array_equal(accelerator.matmul(a, a.T), a.astype(int) @ a.T)


def when(holds):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_products_over_tcp_by_its_name(relay, said):
    for count in (1, 2):
        with Accelerator(f"tcp://localhost:{relay.port}") as accelerator:
            assert right(accelerator) and right(accelerator)
        when(lambda count=count: len(said) == 2 * count)
    assert [text.split(" ", 1)[1] for text in said] == ["has the board", "is gone"] * 2


def test_rejects_a_second_client_until_the_first_leaves(relay, said):
    name = f"tcp://localhost:{relay.port}"
    with Accelerator(name) as accelerator:
        with pytest.raises(TransportClosed) as error:
            Accelerator(name)
        assert str(error.value).startswith(f"{name} must be free, not refuse this client: ")
        assert str(error.value).endswith(" has the board")
        assert right(accelerator)
    when(lambda: said[-1].endswith("gone"))
    with Accelerator(name) as accelerator:
        assert right(accelerator)


def test_rejects_a_port_where_nobody_listens():
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TransportError) as error:
        Accelerator(f"tcp://localhost:{port}")
    assert str(error.value).startswith(f"tcp://localhost:{port} must be where weft serve listens: ")


def test_rejects_another_server(monkeypatch):
    monkeypatch.setattr(tcp, "_ANSWER", 0.3)
    with socket.create_server(("localhost", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(TransportError, match=r"not to something that gives none$"):
            Accelerator(f"tcp://localhost:{port}")


def test_a_board_that_goes_takes_its_client_along(relay, line):
    with contextlib.closing(Accelerator(f"tcp://localhost:{relay.port}")) as accelerator:
        assert right(accelerator)
        line.pull()
        with pytest.raises(TransportClosed) as error:
            right(accelerator)
        text = f"tcp://localhost:{relay.port} must stay connected, not come to its end"
        assert str(error.value) == text


def test_rejects_an_address_that_is_taken(relay, line):
    with pytest.raises(TransportError, match=f"^localhost:{relay.port} must be free to listen at"):
        Relay(None, None, port=relay.port)
