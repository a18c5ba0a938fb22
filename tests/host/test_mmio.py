"""The transport over registers, against a model of them with the golden core behind it."""

import itertools
import mmap
import random

import numpy as np
import pytest
from golden_stream import GoldenStream
from products import operands

from weft import Accelerator
from weft.commands import Job, Status
from weft.config import Config
from weft.host.mmio import LiteXRegisters, MappedRegisters, MmioTransport
from weft.host.opening import open_transport
from weft.host.transport import TransportClosed, TransportError, TransportTimeout
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.registers import REGISTERS, SPACE, VERSION, describe

SMALL = Config(rows=2, cols=3, lanes=1, bytes_in=8, bytes_out=4, a_words=64, b_words=64)
IP = Ip(config=SMALL, bus="axi")
NAME = {item.address: item.name for item in (*registers(IP), *fifo_ports(IP))}
ADDRESS = {name: address for address, name in NAME.items()}


class RegisterModel:
    """What the registers of `docs/ip.md` promise: full FIFOs, results in parts, a slow reset."""

    def __init__(self, config=SMALL, seed=1, space=511, reset_reads=3):
        self.core, self.word = GoldenStream(config), config.bytes_in
        self.random, self.space, self.reset_reads = random.Random(seed), space, reset_reads
        self.commands, self.results, self.shown = bytearray(), b"", 0
        self.packet = None
        self.free = 0  # words that may be written, as read last
        self.written = 0  # words
        self.log, self.closed = [], 0

    def read(self, address):
        if address < 4 * len(REGISTERS):
            return self.core.read(address // 4, 1, 1)[0]
        return getattr(self, "read_" + NAME[address])()

    def write(self, address, value):
        assert 0 <= value < 1 << 32
        getattr(self, "write_" + NAME[address])(value)

    def close(self):
        self.closed += 1

    def write_control(self, value):
        self.log.append(value)
        if value & 2:
            self.core.abort(1)

    def read_status(self):
        self.reset_reads -= 1
        return 2 if self.reset_reads > 0 else 0

    def accept(self):
        """The core accepts some of the stream words that were written."""
        count = self.random.randint(0, len(self.commands)) // self.word * self.word
        self.core.send_words(bytes(self.commands[:count]))
        del self.commands[:count]

    def read_cmd_fifo_free(self):
        self.accept()
        self.free = self.space - len(self.commands) // 4
        return self.free

    def write_cmd_fifo(self, value):
        assert self.free > 0, "no word may be written without space"
        self.free -= 1
        self.written += 1
        self.commands += value.to_bytes(4, "little")

    def read_result_level(self):
        assert self.shown == 0, "all words of a level must be read"
        self.accept()
        if self.packet is None:
            try:
                self.packet = self.core.receive(0)
            except TransportTimeout:
                return 0
            self.results = self.packet.data
        most = len(self.results) // 4
        self.shown = self.random.randint(0, min(most, 512))
        complete = self.shown == most
        return self.shown | complete << 16 | (self.packet.status << 24 if complete else 0)

    def read_result_tag(self):
        return self.packet.tag

    def read_result_fifo(self):
        assert self.shown > 0, "no word may be read from an empty FIFO"
        self.shown -= 1
        word, self.results = self.results[:4], self.results[4:]
        if not self.results:
            self.packet = None
        return int.from_bytes(word, "little")


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (2, 8, 3), (7, 33, 10), (40, 60, 20)])
@pytest.mark.parametrize("space", [511, 8])
def test_products_equal_numpy(m, k, n, space):
    a, b = operands(m, k, n, seed=m)
    with Accelerator(MmioTransport(RegisterModel(space=space))) as acc:
        assert acc.config == SMALL
        for _ in range(2):
            assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)
        assert acc.counters()["finished"] > 0


def test_resident_operands_and_requantized_results():
    config = Config(
        rows=2, cols=2, lanes=2, requantize="tflite", bytes_in=4, bytes_out=4, a_words=64,
        b_words=64,
    )
    a, b = operands(5, 12, 4)
    options = {"scale": 0.01, "zero_point": 3}
    with (
        Accelerator(MmioTransport(RegisterModel(config))) as acc,
        Accelerator(GoldenStream(config)) as golden, acc.load(b) as resident,
    ):
        assert np.array_equal(acc.matmul(a, resident), a.astype(int) @ b)
        y = acc.matmul(a, b, **options)
        assert y.dtype == np.int8 and np.array_equal(y, golden.matmul(a, b, **options))


def test_starts_with_a_soft_reset():
    model = RegisterModel()
    transport = MmioTransport(model)
    assert model.log == [1] and model.reset_reads == 0 and transport.fresh
    transport.abort(1)
    assert model.log == [1, 2]


def test_a_job_that_is_rejected_has_its_status():
    transport = MmioTransport(RegisterModel())
    transport.send_words(Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=77).pack())
    packet = transport.receive(10)
    assert (packet.tag, packet.last, packet.status) == (77, True, Status.REJECTED)


def test_restart_discards_what_was_not_written():
    model = RegisterModel(space=2)
    transport = MmioTransport(model)
    job = Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=5).pack()
    transport.send_words(job * 20)
    transport.restart(1)
    written = model.written
    for _ in range(20):  # more than enough for a word to be accepted
        with pytest.raises(TransportTimeout):
            transport.receive(0)
    assert model.written == written == 2


def test_words_that_arrive_renew_the_timeout(monkeypatch):
    class Slow(RegisterModel):
        """One result word at a time."""

        def read_result_level(self):
            level = super().read_result_level()
            self.shown = min(1, len(self.results) // 4)
            complete = self.shown == len(self.results) // 4 == 1
            return self.shown | complete << 16 if self.packet else level

    clock = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    a, b = operands(10, 8, 9)
    with Accelerator(MmioTransport(Slow()), timeout=20) as acc:
        assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)
    assert next(clock) > 20


def test_registers_past_the_end_are_zero():
    transport = MmioTransport(RegisterModel())
    assert transport.read(0, 4, 1) == describe(SMALL)[:4]
    assert transport.read(len(REGISTERS) - 1, 3, 1)[1:] == [0, 0]


def test_times_out_if_nothing_moves():
    with pytest.raises(TransportTimeout, match="no result word arrived for 0 s"):
        MmioTransport(RegisterModel()).receive(0)


def test_rejects_a_reset_that_does_not_end():
    model = RegisterModel(reset_reads=1 << 60)
    with pytest.raises(TransportTimeout, match="did not leave its reset for 0 s"):
        MmioTransport(model, timeout=0)
    assert model.closed == 1


def test_rejects_registers_of_something_else():
    class Zeros(RegisterModel):
        def read(self, address):
            return 0

    model = Zeros()
    with pytest.raises(TransportError, match="do not describe a Weft core: register magic must be"):
        MmioTransport(model)
    assert model.closed == 1


def test_rejects_parts_of_words_and_use_after_close():
    model = RegisterModel()
    transport = MmioTransport(model)
    with pytest.raises(ValueError, match="whole words of 8 bytes, not 9 bytes"):
        transport.send_words(bytes(9))
    transport.close()
    transport.close()
    assert model.closed == 1
    for use in (
        lambda: transport.send_words(b""), lambda: transport.receive(1), lambda: transport.abort(1),
        lambda: transport.read(0, 1, 1), lambda: transport.restart(1),
    ):
        with pytest.raises(TransportClosed, match="the registers of the core are closed"):
            use()


def test_litex_client():
    class Client:
        """LiteX's RemoteClient, on the model, at address 0x3000_0000."""

        def __init__(self, model):
            self.model = model

        def read(self, address):
            return self.model.read(address - 0x3000_0000)

        def write(self, address, value):
            self.model.write(address - 0x3000_0000, value)

        def close(self):
            self.model.close()

    model = RegisterModel()
    a, b = operands(4, 9, 5)
    with Accelerator(MmioTransport(LiteXRegisters(Client(model), 0x3000_0000))) as acc:
        assert np.array_equal(acc.matmul(a, b), a.astype(int) @ b)
    assert model.closed == 1


def test_mapped_registers(tmp_path):
    path = tmp_path / "memory"
    path.write_bytes(bytes(mmap.PAGESIZE) + bytes(range(4)) + bytes(SPACE - 4))
    access = MappedRegisters(str(path), mmap.PAGESIZE)
    assert access.read(0) == 0x03020100
    access.write(8, 0xFEDCBA98)
    assert access.read(8) == 0xFEDCBA98
    access.close()
    assert path.read_bytes()[mmap.PAGESIZE + 8 :][:4] == bytes.fromhex("98badcfe")


def test_rejects_what_cannot_be_mapped(tmp_path):
    with pytest.raises(ValueError, match=f"offset must be a multiple of {mmap.PAGESIZE}, not 0x4"):
        MappedRegisters("/dev/mem", 4)
    with pytest.raises(TransportError, match="missing was not mapped at 0x0: .*No such file"):
        MappedRegisters(str(tmp_path / "missing"))
    (tmp_path / "short").write_bytes(b"")
    with pytest.raises(TransportError, match="short was not mapped at 0x0: "):
        MappedRegisters(str(tmp_path / "short"))


def test_opens_by_name(tmp_path, monkeypatch):
    mapped = []

    def access(path, offset=0):
        mapped.append((path, offset))
        return RegisterModel()

    monkeypatch.setattr("weft.host.opening.MappedRegisters", access)
    for name in ("uio:/dev/uio3", "mem:0x43c00000", "mem:4096"):
        open_transport(name).close()
    assert mapped == [("/dev/uio3", 0), ("/dev/mem", 0x43C00000), ("/dev/mem", 4096)]
    for name in ("mem:12g", "mem:", "uio:3"):
        with pytest.raises(ValueError, match=f"transport must be .*, not '{name}'"):
            open_transport(name)


@pytest.mark.parametrize("number, word, text", [
    (0, int.from_bytes(b"WNET", "little"), "register magic must be .*; if Weft made the core, "),
    (1, VERSION - 1, "register version must be .*; if Weft made the core, .*: weft build BOARD, "),
    (2, 7, "register kind must be under 3, not 7"),
])
def test_a_core_of_another_version_is_refused_by_name(monkeypatch, number, word, text):
    model = RegisterModel()
    read, closed = model.read, []
    model.read = lambda address: word if address == 4 * number else read(address)
    model.close = lambda: closed.append(True)
    model.write = None  # nothing is written
    monkeypatch.setattr("weft.host.opening.MappedRegisters", lambda *given: model)
    with pytest.raises(TransportError, match=f"do not describe a Weft core: {text}"):
        open_transport("uio:/dev/uio3")
    assert closed == [True]
