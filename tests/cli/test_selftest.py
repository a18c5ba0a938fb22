"""``weft selftest`` passes on a correct core and fails on a faulty one; ``weft monitor``."""

import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from faulty_pipe import End
from golden_network_board import PipedNetworkBoard
from memory_area import MemoryArea
from network_cores import PROGRAM, network_core_config
from network_registers import NetworkRegisterModel

from weft.cli import main, selftest
from weft.commands import Region
from weft.config import Config
from weft.host import Accelerator
from weft.host.board import BoardTransport
from weft.host.emulated import GoldenTransport
from weft.host.golden_core import IntegerCore
from weft.host.network_driver import NetworkDriver
from weft.host.opening import NetworkMmioTransport
from weft.host.product import Resident
from weft.host.tcp import TcpServer, listen
from weft.host.transport import Packet, TransportBusy, TransportClosed

SMALL = ["--rows", "2", "--cols", "3", "--depth", "2", "--a-words", "64", "--b-words", "32"]
CHECKS = [
    "identity", "A buffer", "B buffer", "link", "1 x 1 x 1", "K of 1", "one tile", "ragged edges",
    "larger than the array", "more K than a buffer holds", "more rows than A holds", "extremes",
    "resident B", "back to back",
]


def table(said):
    """``{name: passed}`` of the printed table."""
    rows = re.findall(r"^ ?(\S.*?)  +(.*?) +(yes|NO) *$", said, re.M)
    return {name: passed for name, _, passed in rows}


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch):
    """The machine may be slow."""
    monkeypatch.setattr(selftest, "_TIMEOUT", 600)


@pytest.mark.parametrize("more, finished", [
    ([], True), (["--requantize", "none", "--activation", "none"], False),
    (["--requantize", "single"], True), (["--requantize", "onnx"], True),
    (["--dtype", "bf16", "--depth", "1"], True),
    (["--dtype", "bf16", "--depth", "1", "--activation", "none", "--flush-subnormals"], True),
])
def test_golden_passes(more, finished, capsys):
    assert main(["selftest", "golden", *SMALL, *more]) == 0
    expected = CHECKS + ["finished on the chip"] * finished
    said = capsys.readouterr().out
    assert table(said) == dict.fromkeys(expected, "yes")
    assert [name for name in expected if f"{name}: passed\n" not in said] == []


@pytest.mark.parametrize("seed", ["7"])
def test_a_simulated_core_passes(seed, capsys):
    assert main(["selftest", "sim", *SMALL, "--seed", seed]) == 0
    said = capsys.readouterr().out
    assert set(table(said).values()) == {"yes"}
    assert re.search(r"link +[\d,]+ bytes/s to the core,", said)


@pytest.mark.exit_code("selftest", 1)
def test_reports_a_wrong_bit(monkeypatch, capsys):
    real = GoldenTransport.receive
    jobs = iter(range(1000))

    def receive(self, timeout):
        packet = real(self, timeout)
        if packet.status or next(jobs) != 30:
            return packet
        data = bytearray(packet.data)
        data[0] ^= 1
        return Packet(packet.tag, packet.last, packet.status, bytes(data))

    monkeypatch.setattr(GoldenTransport, "receive", receive)
    assert main(["selftest", "golden", *SMALL]) == 1
    said = capsys.readouterr().out
    [wrong] = [name for name, passed in table(said).items() if passed != "yes"]
    failure = rf"^{wrong}: (\w+: )?1 of \d+ results differ, the first at \(\d+, \d+\): "
    assert re.search(failure, said, re.M)


def test_reports_a_wrong_product_with_resident_operands(monkeypatch, capsys):
    real = Accelerator.matmul

    def matmul(self, a, b, **arguments):
        y = real(self, a, b, **arguments)
        return y + 1 if isinstance(b, Resident) else y

    monkeypatch.setattr(Accelerator, "matmul", matmul)
    assert main(["selftest", "golden", *SMALL]) == 1
    assert table(capsys.readouterr().out)["resident B"] == "NO"


@pytest.mark.parametrize("region, name", [(Region.A, "A buffer"), (Region.B, "B buffer")])
def test_reports_two_pages_at_one_address(region, name, monkeypatch, capsys):
    """As if an address line were stuck."""
    real = IntegerCore.load

    def load(self, load, payload):
        real(self, load, payload)
        memory = self.memory[region]
        memory[16:32] = memory[:16]

    monkeypatch.setattr(IntegerCore, "load", load)
    assert main(["selftest", "golden", *SMALL]) == 1
    assert f"\n{name}: noise: " in capsys.readouterr().out


def test_reports_a_closed_link_and_the_checks_before(monkeypatch, capsys):
    real = GoldenTransport.receive
    jobs = iter(range(1000))

    def receive(self, timeout):
        if next(jobs) > 80:
            raise TransportClosed("the cable must stay connected")
        return real(self, timeout)

    monkeypatch.setattr(GoldenTransport, "receive", receive)
    assert main(["selftest", "golden", *SMALL]) == 1
    said = capsys.readouterr().out
    found = table(said)
    assert 2 < len(found) < len(CHECKS)
    assert list(found.values()) == ["yes"] * (len(found) - 1) + ["NO"]
    assert "the cable must stay connected" in said


def test_rejects_no_transport(capsys):
    assert main(["selftest", "nonsense"]) == 2
    assert "transport must be a serial port" in capsys.readouterr().err


class BusMemory:
    """The memory of the bus of a model; a bit of a byte can be ``broken``."""

    def __init__(self, model, broken):
        self._bytes, self._broken = model.bus_memory, broken

    def read(self, offset, size):
        return self._bytes[offset : offset + size].tobytes()

    def write(self, offset, data):
        self._bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        if self._broken and offset <= 0x9F0 < offset + len(data):
            self._bytes[0x9F0] |= 1


class NetworkBoard(PipedNetworkBoard):
    """``stuck`` is a byte with a bit that stays 0."""

    stuck = None

    def write(self, payload):
        super().write(payload)
        if self.stuck is not None:
            self.memory[self.stuck] &= 0xFE


@pytest.mark.parametrize("stuck", [None, 1234])
def test_a_core_for_networks(stuck, monkeypatch, capsys):
    config = network_core_config(2, 4, 4, 2, words=256, b_words=40, lines=16, read_vectors=2)
    board = NetworkBoard(config)
    board.stuck = stuck
    end = End(board)
    monkeypatch.setattr("weft.host.opening.open_transport", lambda *_, **__: BoardTransport(
        end, end
    ))
    assert main(["selftest", "/dev/board"]) == (stuck is not None)
    said = capsys.readouterr().out
    found = table(said)
    assert set(found) == {
        *CHECKS, "memory", "finished on the chip", "usage"
    } - {"A buffer", "B buffer", "link"}
    assert f"2x4x4-networks, 32 MAC/cycle, {config.hash:08x}" in said
    if stuck is None:
        assert set(found.values()) == {"yes"}
    else:
        assert "memory: 1 of 6,144 bytes are wrong\n" in said


MEMORY_CHECKS = (
    "data lines", "address lines", "sample", "byte enables", "refresh", "patterns",
)


@pytest.mark.parametrize("broken", [False, True])
def test_a_core_with_a_program_memory(broken, monkeypatch, capsys):
    monkeypatch.setattr("weft.host.memory_test._REST", 0)
    model = NetworkRegisterModel(PROGRAM)
    area = MemoryArea(BusMemory(model, broken), 0x100, 0x900)
    monkeypatch.setattr(
        "weft.host.opening.open_transport",
        lambda *_, **__: NetworkMmioTransport(model, program=area),
    )
    assert main(["selftest", "uio:/dev/uio0"]) == broken
    said = capsys.readouterr().out
    found = table(said)
    assert set(found) == {
        *CHECKS, "memory", "finished on the chip",
        *(f"program memory, {check}" for check in MEMORY_CHECKS),
    } - {"A buffer", "B buffer", "link"}
    assert found["program memory, patterns"] == ("NO" if broken else "yes")
    if broken:
        assert "program memory, patterns: 1 of 4,608 bytes are wrong\n" in said
    else:
        assert set(found.values()) == {"yes"}


def test_rejects_a_core_of_another_config(monkeypatch, capsys):
    monkeypatch.setattr(
        "weft.cli.options.given_config", lambda *_: Config(rows=5)
    )
    monkeypatch.setattr(
        "weft.host.opening.open_transport",
        lambda name, config, baud: GoldenTransport(Config()),
    )
    assert main(["selftest", "/dev/ttyUSB1"]) == 2
    assert capsys.readouterr().err == "weft: error: the core's rows must be 5, not 8\n"


@pytest.mark.parametrize("flag, value, rule", [
    ("interval", "nan", "a number in 0..86400"),
    ("interval", "inf", "a number in 0..86400"),
    ("interval", "-1", "a number in 0..86400"),
    ("interval", "1e300", "a number in 0..86400"),
    ("interval", "soon", "a number in 0..86400"),
    ("count", "0", "an integer of 1 or more"),
])
def test_monitor_rejects(flag, value, rule, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["monitor", "golden", f"--{flag}={value}"])
    assert capsys.readouterr().err == (
        f"weft monitor: error: argument --{flag}: {flag} must be {rule}, not {value!r};"
        " see weft monitor --help\n"
    )


def test_monitor_shows_counters(capsys):
    assert main(["monitor", "golden", *SMALL, "--count", "2", "--interval", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == "2x3x2, 12 MAC/cycle"
    assert lines[-3].split() == [
        "busy", "cycles", "active", "starved", "stalled", "words", "in", "words", "out", "jobs",
        "errors",
    ]
    assert lines[-1].split() == ["0", "0.0%", "0.0%", "0.0%", "0", "0", "0", "0"]


def test_monitor_does_not_touch_the_ip_core_that_it_watches(capsys, monkeypatch):
    """It only reads: a reset would end the work of another program."""
    golden, closed = GoldenTransport(Config(rows=2, cols=3)), []
    registers = SimpleNamespace(
        read=lambda address: golden.read(address // 4, 1, 1)[0],
        write=lambda *args: pytest.fail("written"), close=lambda: closed.append(True),
    )
    monkeypatch.setattr("weft.host.opening.open_registers", lambda name: registers)
    words = ["monitor", "uio:/dev/uio0", "--count", "1", "--interval", "0"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("2x3x1")
    assert main([*words, "--rows", "4"]) == 2
    assert "rows" in capsys.readouterr().err and closed == [True, True]


def test_monitor_says_what_to_do_with_a_busy_board(capsys):
    def said(transport):
        assert main(["monitor", transport, "--count", "1"]) == 2
        error = capsys.readouterr().err
        assert error.endswith(
            ". A board takes one program at a time: run weft monitor before or after that program,"
            " or read the counters in it (Accelerator.counters)\n"
        )
        return error

    end = End(PipedNetworkBoard(network_core_config(3, 4, 4)))
    server = TcpServer(end, end, listen(), timeout=600)
    thread = threading.Thread(target=server.serve)
    thread.start()
    address = f"tcp://localhost:{server.port}"
    with NetworkDriver(address, timeout=600):
        assert f"{address} refused the connection: 127.0.0.1:" in said(address)
    server.close()
    thread.join(600)
    busy = TransportBusy("/dev/ttyUSB1 is in use by another program")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.cli.monitor.open_named", lambda *args: throw(busy))
        assert said("/dev/ttyUSB1").startswith("weft: error: /dev/ttyUSB1 is in use by another")


def throw(error):
    raise error
