"""C code of a network for a core with a program memory, on a model of the registers."""

import ctypes
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from c_network_driver import CNetworkDriver
from digits import CNN
from network_cores import PROGRAM
from network_programs import random_inputs
from network_registers import NetworkRegisterModel

import weft
from weft.kit.files.weft_driver import compiler
from weft.models.c_code import network_core_c_files
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.descriptors import ListError
from weft.network_core.ip import NetworkIp

pytest.importorskip("tflite")
OK, ID, NULL, RANGE, REFUSED, NOT_LOADED, BUS, NO_ANSWER, ALIGN = (
    0, -1, -3, -4, -5, -11, -12, -13, -15
)
IP = NetworkIp(config=PROGRAM, bus="axi")
FIRST, SECOND = 0x100, 0x100 + PROGRAM.program_bytes  # bytes of the bus


class ProgramUnderTest:
    """The C code of the digits network, and places of its program memory."""

    def __init__(self, folder, changes=()):
        self.program = weft.load(CNN).compile(PROGRAM)
        self.model = NetworkRegisterModel(PROGRAM)
        self.files = network_core_c_files(self.program)
        self.driver = CNetworkDriver(folder, IP, self.model, self.files, changes)
        assert self.init() == OK
        self.bytes = self.define("PROGRAM_BYTES")

    def define(self, name):
        line = next(x for x in self.files["net.h"].decode().splitlines() if f"_{name} = " in x)
        return int(line.split("=")[1].split(",")[0])

    def init(self):
        return self.driver.call("init", None)

    def place(self, first, size=None):
        pointer = ctypes.c_void_p(self.driver.cache.ctypes.data + first)
        return self.driver.call("program", pointer, self.bytes if size is None else size)

    def failure_text(self, error, size=100):
        """The text of an error, in a buffer of so many bytes."""
        text = ctypes.create_string_buffer(b"?" * 99, 100)
        self.driver._function("failure_text").restype = ctypes.c_char_p
        found = self.driver.call("failure_text", error, text, size)
        assert found == text.value
        assert text.raw[size:] == b"?" * (99 - size) + b"\0" * (size < 100)
        return text.value.decode()

    def load(self):
        return self.driver.network("digits_cnn_load")

    def __call__(self, x):
        values, y = np.ascontiguousarray(x), np.zeros(10, np.int8)
        error = self.driver.network(
            "digits_cnn_run", *(ctypes.c_void_p(one.ctypes.data) for one in (values, y))
        )
        return error, y


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return ProgramUnderTest(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def case(code):
    x = random_inputs(code.program, 2)
    with code.program.open(GoldenRunner(PROGRAM)) as session:
        return x, session(x).reshape(2, -1)


def check(code, case):
    for x, wanted in zip(*case, strict=True):
        error, y = code(x)
        assert error == OK and np.array_equal(y, wanted)


def test_a_prefix_is_in_all_names(code):
    """Also in those of comments."""
    files = network_core_c_files(code.program, "mm")
    assert b"if mm_program() gets it before mm_digits_cnn_load()." in files["net.h"]
    assert not [name for name, data in files.items() if b"weft_" in data or b"WEFT_" in data]


def test_the_header_says_for_which_memory_its_cycles_are(code):
    text = " ".join(code.files["net.h"].decode().replace("\n *", " ").split())
    assert (
        "5,592 cycles of the core, beside the time of the processor. The cycles are for a program"
        " memory that answers after 32 cycles with a beat a cycle, and a PROGRAM_BASE that is a"
        " multiple of 128 bytes."
    ) in text


def test_a_network_in_two_places_of_one_memory(code, case):
    """Each has its window, and what lies beside it is not changed."""
    before = code.model.bus_memory.copy()
    for first in (FIRST, SECOND):
        assert code.init() == OK
        assert code(case[0][0])[0] == NOT_LOADED
        assert code.place(first) == OK and code.load() == OK
        check(code, case)
        assert code.model.values["program_base"] == first
        row = PROGRAM.banks * PROGRAM.array.depth
        assert code.model.values["program_limit"] == code.bytes // row
        changed = np.flatnonzero(code.model.bus_memory != before)
        assert first <= changed[0] and changed[-1] < first + code.bytes
        code.model.bus_memory[first : first + code.bytes] = before[first : first + code.bytes]


def test_the_program_survives_a_reset_of_the_core(code, case):
    assert code.place(FIRST) == OK and code.load() == OK
    assert code.driver.call("start", 0, code.program.log) == OK
    code.driver.call("abort")
    assert code(case[0][0])[0] == NOT_LOADED
    assert code.load() == OK
    check(code, case)


@pytest.mark.parametrize("error, number, text", [
    (ListError.BUS, BUS, "the program memory answered an access with an error"),
    (ListError.TIMEOUT, NO_ANSWER, "the program memory did not answer"),
])
@pytest.mark.parametrize("job", [0, 3, 10, 65_535])
def test_errors_of_the_memory_name_the_job_in_words(code, case, error, number, text, job):
    assert code.place(FIRST) == OK and code.load() == OK
    code.model.board.fails = error, job
    assert code(case[0][0])[0] == number
    code.model.board.fails = None
    assert code.failure_text(number) == f"{text}, in job {job}"
    assert code(case[0][0])[0] == NOT_LOADED
    assert code.failure_text(NOT_LOADED) == "the network must be loaded"
    assert code.load() == OK
    check(code, case)


def test_the_text_of_a_failure_fits_its_buffer(code):
    code.model.board.error, code.model.board.jobs = ListError.BUS, 12
    whole = "the program memory answered an access with an error, in job 12"
    for size in range(1, len(whole) + 3):
        assert code.failure_text(BUS, size) == whole[: size - 1]


def test_power_lost_between_two_lists(code, case):
    """The core refuses to start, so no inference has a wrong result; then all is loaded again."""
    assert code.place(FIRST) == OK and code.load() == OK
    check(code, case)
    code.model.power_on()
    error, y = code(case[0][0])
    assert error == REFUSED and not y.any()
    assert code.init() == OK
    assert code(case[0][0])[0] == NOT_LOADED
    assert code.place(FIRST) == OK and code.load() == OK
    check(code, case)


def test_wrong_memories_are_refused(code):
    assert code.init() == OK
    assert code.load() == NULL  # no memory
    assert code.place(FIRST + 1) == ALIGN
    assert code.place(FIRST, 4) == RANGE
    assert code.driver.call("program", None, 4096) == NULL
    assert code.place(FIRST, code.bytes - PROGRAM.banks * PROGRAM.array.depth) == OK
    data = ctypes.create_string_buffer(16)
    end = code.bytes // PROGRAM.array.depth - PROGRAM.banks
    assert code.driver.call("program_write", end - 1, data, 5) == RANGE
    assert code.driver.call("program_write", end - 1, data, 4) == OK
    assert code.driver.call("program_read", end, data, 1) == RANGE
    assert code.driver.call("start", end, 0) == RANGE
    assert code.driver.call("program_write", 0, None, 1) == NULL


def test_a_core_of_another_config_is_refused_before_a_byte_is_written(code):
    model = code.model
    before = model.bus_memory.copy()
    model.board.config = replace(PROGRAM, program_words=64)
    model.log.clear()
    assert code.init() == ID
    model.board.config = PROGRAM
    assert model.log == [] and np.array_equal(model.bus_memory, before)


def test_the_program_is_linked_once(tmp_path):
    """The memory of the core is the array of the C code: nothing is copied, and it may be const."""
    code = ProgramUnderTest(tmp_path)
    image = (ctypes.c_uint8 * code.bytes).in_dll(code.driver.lib, "digits_cnn_program")
    assert ctypes.addressof(image) % (16 * PROGRAM.beat_bytes) == 0
    program, depth = code.program, PROGRAM.array.depth
    wanted = bytearray(code.bytes)
    for first, part in [
        *((0, part) for part in program.setup),
        *((segment.run_first, segment.run) for segment in program.segments),
    ]:
        wanted[first * depth : first * depth + len(part)] = part
    assert bytes(image) == bytes(wanted) and len(program.setup) <= 1
    source = code.files["net.c"].decode()
    assert source.count("weft_program_write(") == 1
    flags = ["-DNET_PROGRAM=const", "-I", tmp_path, "-c", "-o", tmp_path / "net.o"]
    subprocess.run([*compiler(), *flags, tmp_path / "net.c"], check=True)


def test_a_load_into_the_program_itself_only_flushes(tmp_path):
    code = ProgramUnderTest(tmp_path)
    assert code.place(FIRST) == OK
    at = code.driver.cache[FIRST : FIRST + code.bytes]
    image = (ctypes.c_uint8 * code.bytes).in_dll(code.driver.lib, "digits_cnn_program")
    at[:] = np.frombuffer(image, np.uint8)
    code.model.bus_memory[FIRST : FIRST + code.bytes] = 0
    pointer = ctypes.c_void_p(at.ctypes.data)
    assert code.driver.call("program_write", 0, pointer, 64) == OK
    assert np.array_equal(code.model.bus_memory[FIRST : FIRST + 64], at[:64])
    assert not code.model.bus_memory[FIRST + 64 : FIRST + code.bytes].any()


@pytest.mark.parametrize("bugs", [(), (("    WEFT_INVALIDATE(from, bytes);\n", ""),)])
def test_reads_what_the_core_wrote_and_not_the_cache(tmp_path, bugs):
    code = ProgramUnderTest(tmp_path, bugs)
    assert code.place(FIRST) == OK and code.load() == OK
    first = FIRST + code.program.log * PROGRAM.array.depth
    written = np.arange(1, 12, dtype=np.uint8)
    code.model.bus_memory[first : first + written.size] = written
    found = np.zeros_like(written)
    pointer = ctypes.c_void_p(found.ctypes.data)
    assert code.driver.call("program_read", code.program.log, pointer, found.size) == OK
    assert np.array_equal(found, written) == (not bugs)


@pytest.mark.parametrize("bug", [
    ("core->program + vector * WEFT_DEPTH;", "core->program + WEFT_DEPTH;"),
    ("        copy(to, from, bytes);\n", "        copy(to, from, 4);\n"),
    ("    WEFT_FLUSH(to, bytes);\n", ""),
], ids=["wrong place", "no copy", "no flush"])
def test_the_test_sees_a_bug(tmp_path, case, bug):
    code = ProgramUnderTest(tmp_path, [bug])
    assert code.place(FIRST) == OK
    error = code.load() or code(case[0][0])[0]
    assert error != OK
