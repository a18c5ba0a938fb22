"""The driver of a core with a program memory, against a model of its registers."""

import mmap
from dataclasses import replace

import numpy as np
import pytest
from digits import CNN
from memory_area import MemoryArea
from network_core_networks import NetworkBuilder
from network_cores import PROGRAM, SIMULATED
from network_programs import random_inputs
from network_registers import NetworkRegisterModel
from rejects import rejects

import weft
from weft.host.emulated import ListTransport
from weft.host.network_driver import NetworkDriver
from weft.host.opening import NetworkMmioTransport
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
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
        transport.write_program(0, b"1", 1.0)
    driver = NetworkDriver(transport)
    with rejects(ValueError, "the core must have a program memory"):
        driver.read_program(0, 1)


def test_matrix_products():
    """Lists and weights lie in the area of the core, and nowhere else; A and results on the chip.
    """
    model, rng = NetworkRegisterModel(PROGRAM), np.random.default_rng(3)
    area = area_of(model, 0x100, 0x800)
    with weft.Accelerator(NetworkMmioTransport(model, program=area)) as core:
        for m, k, n in ((1, 1, 1), (9, 30, 7), (40, 600, 21)):
            a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
            for _ in range(2):
                y = core.matmul(a, b)
                assert (y == a.astype(int) @ b.astype(int)).all()
            golden = weft.Accelerator(ListTransport(GoldenRunner(PROGRAM)))
            given = dict(scale=0.002, zero_point=-9)
            assert (core.matmul(a, b, **given) == golden.matmul(a, b, **given)).all()
    written = np.flatnonzero(model.bus_memory != 0x5A)
    assert 0x100 <= written[0] and written[-1] < 0x900


@pytest.fixture
def device(monkeypatch, tmp_path):
    """The UIO device of a core; map 1 are 0x900 bytes from 0x100 on."""
    model = NetworkRegisterModel(PROGRAM)
    facts = tmp_path / "uio3/maps/map1"
    facts.mkdir(parents=True)
    (facts / "addr").write_text("0x00000100\n")
    (facts / "size").write_text("0x900\n")
    mapped = []
    monkeypatch.setattr("weft.host.opening._UIO", tmp_path)
    monkeypatch.setattr("weft.host.opening.MappedRegisters", lambda *given: model)
    monkeypatch.setattr(
        "weft.host.opening.MappedMemory",
        lambda path, address, size, offset: mapped.append((path, offset))
        or area_of(model, address, size),
    )
    return model, facts, mapped


def test_a_uio_device_has_the_program_memory(device):
    model, _, mapped = device
    a, b = np.ones((3, 40), np.int8), np.ones((40, 5), np.int8)
    with weft.Accelerator("uio:/dev/uio3") as core:
        assert (core.matmul(a, b) == 40).all()
    with NetworkDriver("uio:/dev/uio3", PROGRAM) as driver:
        assert driver.program_bytes == 0x900
    assert mapped == 2 * [("/dev/uio3", mmap.PAGESIZE)]
    assert model.values["program_base"] == 0x100 and model.closed == 2


@pytest.mark.parametrize("open_by", [weft.Accelerator, NetworkDriver])
def test_a_device_without_the_program_memory_is_refused(device, open_by):
    model, facts, _ = device
    hint = f"{ABSENT}; the program memory of a core at uio: is map 1 of the device"
    with rejects(TransportError, f"mem:0x43c00000: {hint}"):
        open_by("mem:0x43c00000")
    (facts / "size").write_text("much")
    text = "uio:/dev/uio3: the program memory was not mapped: invalid literal for int.*: 'much'"
    with pytest.raises(TransportError, match=text):
        open_by("uio:/dev/uio3")
    for part in ("addr", "size"):
        (facts / part).unlink()
    facts.rmdir()
    with rejects(TransportError, f"uio:/dev/uio3: {hint}"):
        open_by("uio:/dev/uio3")
    assert model.closed == 3 and model.log == []


def test_a_program_memory_that_is_too_small_for_products():
    model = NetworkRegisterModel(PROGRAM)
    with rejects(ValueError, (
        "a network core must have a memory and buffers for a product of one tile, not 6144 bytes,"
        " 480 bytes of program memory and 64 lines"
    )):
        ListTransport(opened(model, area_of(model, 0, 490)))
    assert (model.bus_memory == 0x5A).all()


def test_a_network_with_products():
    """Its lists, the lists of its products and those of another session do not disturb another."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 6, 3))
    first = builder.convolution(0, 8)
    x = builder.convolution(first, 8)
    builder.on_host()
    builder.dense(builder.add(builder.convolution(x, 8), first), 5)
    program = compile_network_core(builder.graph(), target_of(PROGRAM))
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        wanted = session(x)
    model, used = NetworkRegisterModel(PROGRAM), program.program_memory_used
    with rejects(AcceleratorError, (
        f"the program memory must have {used:,} bytes for net, not {used // 12 * 12 - 12:,}"
    )):
        program.open(opened(model, area_of(model, 0x100, used // 12 * 12 - 12)))
    assert (model.bus_memory == 0x5A).all()
    area = area_of(model, 0x100, -(-used // 12) * 12)
    session = program.open(opened(model, area))
    for _ in range(2):
        assert np.array_equal(session(x), wanted)
    written = np.flatnonzero(model.bus_memory != 0x5A)
    assert 0x100 <= written[0] and written[-1] < 0x100 + area.size
    model.power_on()
    with pytest.raises(TransportError):
        session(x)
    assert np.array_equal(session(x), wanted)


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
