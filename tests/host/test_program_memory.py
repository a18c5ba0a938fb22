"""The driver of a core with a program memory, against a model of its registers."""

from dataclasses import replace

import numpy as np
import pytest
from digits import CNN
from memory_area import MemoryArea
from network_cores import PROGRAM, SIMULATED
from network_programs import random_inputs
from network_registers import NetworkRegisterModel
from rejects import rejects

import weft
from weft.host.list_transport import ListTransport
from weft.host.network_driver import NetworkDriver
from weft.host.network_mmio import NetworkMmioTransport
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.models.network_core.session import GoldenRunner
from weft.network_core.descriptors import ListError, split

ABSENT = (
    "program must be the memory of lists and weights, since the core has a program memory:"
    " NetworkMmioTransport(registers, program=...)"
)


class BusMemory:
    """The memory of the bus of a model."""

    def __init__(self, model):
        self.bytes = model.bus_memory

    def read(self, offset, size):
        return self.bytes[offset : offset + size].tobytes()

    def write(self, offset, data):
        self.bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)


def area_of(model, offset, size=PROGRAM.program_bytes):
    return MemoryArea(BusMemory(model), offset, size)


def opened(model, area):
    return NetworkDriver(NetworkMmioTransport(model, program=area))


def test_two_programs_in_one_memory():
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(PROGRAM)
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        wanted = session(x)
    model = NetworkRegisterModel(PROGRAM)
    first, second = area_of(model, 0x100, 0x5000), area_of(model, 0x5100)
    for area in (first, second):
        session = program.open(opened(model, area))
        assert np.array_equal(session(x), wanted)
        assert model.values["program_base"] == area.address
    row = PROGRAM.banks * PROGRAM.array.depth
    assert ("program_limit", 0x5000 // row) in model.log
    assert np.array_equal(program.open(opened(model, first))(x), wanted)
    assert (model.bus_memory[:0x100] == 0x5A).all()


def test_a_program_of_another_config_is_refused_before_a_byte_is_written():
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(replace(PROGRAM, program_words=1024))
    model = NetworkRegisterModel(PROGRAM)
    driver = opened(model, area_of(model, 0))
    before = model.bus_memory.copy()
    with pytest.raises(AcceleratorError, match="must be the network core of the program"):
        program.open(driver)
    assert np.array_equal(model.bus_memory, before)


def test_bytes_of_the_program_memory():
    model = NetworkRegisterModel(PROGRAM)
    with opened(model, area_of(model, 64, 1000)) as driver:  # 83 words of 12 bytes
        driver.write_program(split(3, PROGRAM.banks), b"abcdefgh")
        assert model.bus_memory[76:84].tobytes() == b"abcdefgh"
        assert driver.read_program(split(4, PROGRAM.banks), 4) == b"efgh"
        with rejects(ValueError, "bytes of the program memory must be in 0..995, not 992..996"):
            driver.write_program(split(248, PROGRAM.banks), bytes(5))


@pytest.mark.parametrize("area, text", [
    (None, ABSENT),
    ((4, 100), "address of program must be a multiple of 8, not 0x4"),
    ((8, 11), "program must have at least 12 bytes, not 11"),
    (((1 << 32) - 8, 12), "program must lie below 0x100000000, not 0xc bytes from 0xfffffff8"),
])
def test_wrong_areas_are_refused(area, text):
    model = NetworkRegisterModel(PROGRAM)
    with rejects(ValueError, text):
        NetworkMmioTransport(model, program=area and area_of(model, *area))
    assert model.log == [] and model.closed == 1


def test_a_core_without_a_program_memory():
    model = NetworkRegisterModel(SIMULATED)
    with rejects(ValueError, "program must be absent: the core has no program memory"):
        NetworkMmioTransport(model, program=area_of(model, 0))
    transport = NetworkMmioTransport(NetworkRegisterModel(SIMULATED))
    with rejects(ValueError, "the core must have a program memory"):
        transport.write_program(0, b"1")
    driver = NetworkDriver(transport)
    with rejects(ValueError, "the core must be an IP core with a program memory"):
        driver.read_program(0, 1)


def test_matrix_products_are_refused():
    with pytest.raises(ValueError, match="a product core must have no program memory"):
        ListTransport(GoldenRunner(PROGRAM))


@pytest.mark.parametrize("error, job, text", [
    (ListError.BUS, 2, (
        "digits_cnn: the list ended with error BUS in job 2 (layer 3 of 5: CONV_2D, ADD):"
        " the program memory answered with an error (SLVERR or DECERR)"
    )),
    (ListError.TIMEOUT, 0, (
        "digits_cnn: the list ended with error TIMEOUT in job 0 (layer 1 of 5: CONV_2D):"
        " the program memory did not answer"
    )),
    (ListError.BUS, 7, (
        "digits_cnn: the list ended with error BUS after its last job, 6:"
        " the program memory answered with an error (SLVERR or DECERR)"
    )),
])
def test_errors_of_the_program_memory_name_the_job_in_words(error, job, text):
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(PROGRAM)
    model, x = NetworkRegisterModel(PROGRAM), random_inputs(program, 1)
    session = program.open(opened(model, area_of(model, 0x100)))
    wanted = session(x)
    model.board.fails = error, job
    with rejects(AcceleratorError, text):
        session(x)
    model.board.fails = None
    assert np.array_equal(session(x), wanted)


def test_power_lost_between_two_lists():
    """The core refuses to start, and the next call writes all again, also to the memory."""
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(PROGRAM)
    model, x = NetworkRegisterModel(PROGRAM), random_inputs(program, 1)
    session = program.open(opened(model, area_of(model, 0x100)))
    wanted = session(x)
    model.power_on()
    text = "the core cannot start a list: another one runs, or the core was reset"
    with rejects(TransportError, text):
        session(x)
    assert np.array_equal(session(x), wanted)
