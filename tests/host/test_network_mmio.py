"""The transport to a network core over registers, against a model of them."""

import random
import struct

import numpy as np
import pytest
from network_cores import network_core_config
from network_registers import NetworkRegisterModel
from rejects import rejects

from weft import Accelerator
from weft.config import Config
from weft.host.network_driver import NetworkDriver
from weft.host.network_frames import MemoryLayout
from weft.host.opening import NetworkMmioTransport
from weft.host.transport import TransportClosed, TransportError, TransportTimeout
from weft.network_core.descriptors import ListEnd, ListError, ListReport, NetworkState, split
from weft.registers import describe

CHIP = network_core_config(2, 4, 4, 2, words=1024, b_words=8, lines=8, read_vectors=2)
CYCLES = 1234  # of every list of the model
LIST, LOG = 600, 900


def at(number):
    return split(number, CHIP.banks)


def opened(timeout=10, **options):
    model = NetworkRegisterModel(CHIP, **options)
    return model, NetworkDriver(NetworkMmioTransport(model, timeout=timeout), timeout=timeout)


def test_runs_lists():
    model, driver = opened()
    result = random.Random(1).randbytes(1021)
    with driver:
        assert driver.config == CHIP
        assert driver.status() == (NetworkState.IDLE, ListReport(ListError.NONE, 0, b"", CYCLES))
        driver.write(at(0), result)
        driver.write(at(LIST), ListEnd(result=at(0), result_bytes=len(result)).pack())
        for _ in range(2):
            report = driver.run(at(LIST), at(LOG))
            assert report == ListReport(ListError.NONE, 0, result, CYCLES)
        driver.write(at(LIST), bytes(128))
        assert driver.run(at(LIST), at(LOG)).error == ListError.OPCODE
        assert driver.status()[0] == NetworkState.ERROR
        driver.abort()
    assert model.closed == 1
    assert ("limit", CHIP.words) in model.log and ("log_address", at(LOG)) in model.log


@pytest.mark.parametrize("case", [
    (5, 3001, {}), (3, 3 * 700, dict(run=3, pitch=2, pixels=700)),
    (4, 40 * 90, dict(run=5, pitch=3, pixels=8, row_step=at(4))),
    (2500, 12 * 10, dict(run=12, pitch=200, pixels=1, row_step=at(-7))),
])
def test_writes_are_those_of_the_link(case):
    """The memory is as after the frames of the same calls."""
    number, size, layout = case
    data = random.Random(size).randbytes(size)
    model, driver = opened()
    wanted = NetworkRegisterModel(CHIP).board
    for first, form, part in driver._parts(at(number), MemoryLayout(**layout), data):
        fields = struct.pack("<IBBHI", first, form.run, form.pitch, form.pixels, form.row_step)
        wanted.write(fields + part)
    with driver:
        driver.write(at(number), data, **layout)
        assert np.array_equal(model.board.memory, wanted.memory)
        assert driver.read(at(9), 1031) == wanted.bytes_at(at(9), 1031)
        driver.write(at(number), b"", **layout)
        assert driver.read(at(9), 0) == b""


def test_a_list_starts_when_the_memory_has_the_data_of_its_writes():
    model, driver = opened()
    end = ListEnd(result=at(9), result_bytes=4).pack()
    writes = [dict(address=at(LIST), data=end), dict(address=at(9), data=b"abcd")]
    assert driver.run(at(LIST), at(LOG), writes=writes).result == b"abcd"
    driver.close()


def test_a_list_that_does_not_end_is_aborted():
    model, driver = opened(stuck="list_busy")
    driver.write(at(LIST), ListEnd().pack())
    with rejects(TransportTimeout, "the list did not end within 0.1 s"):
        driver.run(at(LIST), at(LOG), timeout=0.1)
    assert model.log[-1] == ("control", 2) and model.board.aborts == 1
    model.stuck = ""
    assert driver.run(at(LIST), at(LOG)).error == ListError.NONE


def test_a_list_that_the_core_refuses():
    model, driver = opened()
    driver.write(at(LIST), ListEnd().pack())
    model.values["limit"] = 0
    text = "the core cannot start a list: another one runs, or the core was reset"
    with rejects(TransportError, text):
        driver.run(at(LIST), at(LOG))


@pytest.mark.parametrize("stuck, text", [
    ("write_fifo", "the core wrote no data to its memory for 0.05 s"),
    ("memory_busy", "the core wrote no data to its memory for 0.05 s"),
    ("read_fifo", "the core read no data of its memory for 0.05 s"),
])
def test_no_wait_is_endless(stuck, text):
    model, driver = opened(timeout=0.05)
    model.stuck = stuck
    with rejects(TransportTimeout, text):
        driver.write(at(0), bytes(8))
        driver.read(at(0), 8)
    model.stuck = ""
    driver.write(at(0), b"abcdefgh")
    assert driver.read(at(0), 8) == b"abcdefgh"


def test_rejects_a_reset_that_does_not_end():
    model = NetworkRegisterModel(CHIP, stuck="reset_busy")
    with rejects(TransportTimeout, "the core did not leave its reset for 0 s"):
        NetworkMmioTransport(model, timeout=0)
    assert model.closed == 1


def test_rejects_a_core_for_products_before_the_first_write():
    model = NetworkRegisterModel(CHIP)
    words = describe(Config())
    model.read = lambda address: [*words, *[0] * 30][address // 4]
    with pytest.raises(TransportError, match="must be a network core, not a product core"):
        NetworkMmioTransport(model)
    assert model.log == [] and model.closed == 1


def test_opens_by_name(monkeypatch):
    mapped = []

    def access(path, offset=0):
        mapped.append((path, offset))
        return NetworkRegisterModel(CHIP)

    monkeypatch.setattr("weft.host.opening.MappedRegisters", access)
    for name in ("uio:/dev/uio3", "mem:0x43c00000"):
        with NetworkDriver(name, CHIP) as driver:
            assert driver.status()[0] == NetworkState.IDLE
    assert mapped == [("/dev/uio3", 0), ("/dev/mem", 0x43C00000)]


def test_an_accelerator_opens_by_name(monkeypatch):
    model = NetworkRegisterModel(CHIP)
    monkeypatch.setattr("weft.host.opening.MappedRegisters", lambda *given: model)
    with Accelerator("uio:/dev/uio3") as accelerator:
        assert (accelerator.config.rows, accelerator.config.cols) == (2, 4)
        assert not model.closed
    assert model.closed


def test_use_after_close():
    model = NetworkRegisterModel(CHIP)
    transport = NetworkMmioTransport(model)
    transport.close()
    transport.close()
    assert model.closed == 1
    for use in (
        lambda: transport.read(0, 1, 1), lambda: transport.abort(1), lambda: transport.flush(1),
        lambda: transport.restart_lists(1), lambda: transport.start_list(0, 0),
        lambda: transport.write_memory(0, MemoryLayout(), b""),
        lambda: transport.read_memory(0, 1, 1),
    ):
        with pytest.raises(TransportClosed, match="the registers of the core are closed"):
            use()
