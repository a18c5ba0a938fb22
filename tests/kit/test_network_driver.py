"""The C driver of a network core, on a model of its registers."""

import ctypes
import random
import subprocess

import numpy as np
import pytest
from c_network import shared_library, write_sources
from c_network_driver import CNetworkDriver
from network_cores import network_core_config
from network_registers import NetworkRegisterModel

from weft.kit.files.weft_driver import compiler
from weft.network_core.descriptors import ListEnd, ListLoad, ListLoop, split
from weft.network_core.ip import NetworkIp

CHIP = network_core_config(2, 4, 4, 2, words=1024, b_words=8, lines=8, read_vectors=2)
IP = NetworkIp(config=CHIP, bus="axi")
(OK, BUSY, ID, TIMEOUT, NULL, RANGE, REFUSED, ABORTED, OPCODE, FIELD, ADDRESS, DEADLOCK,
 NOT_LOADED) = (0, 1, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11)
LIST, LOG = 600, 900
FREESTANDING = ["-ffreestanding", "-fno-builtin", "-nostdlib", "-Wl,-z,defs"]


class Layout(ctypes.Structure):
    """The C struct ``weft_layout``."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("run", "pitch", "pixels", "row_step")]


class CoreUnderTest:
    """An initialized driver on a model of the registers."""

    def __init__(self, folder, changes=()):
        self.model = NetworkRegisterModel(CHIP)
        self.driver = CNetworkDriver(folder, IP, self.model, changes=changes)
        assert self.call("init", None) == OK
        self.call("test_poll_limit", 100)

    def call(self, name, *arguments):
        return self.driver.call(name, *arguments)

    def write(self, vector, data, layout=None):
        place = None if layout is None else ctypes.byref(Layout(*layout))
        return self.call("write", vector, place, data, len(data))

    def read(self, vector, count):
        found = ctypes.create_string_buffer(max(count, 1))
        return self.call("read", vector, found, count), found.raw[:count]

    def run(self, *descriptors):
        assert self.write(LIST, b"".join(one.pack() for one in descriptors)) == OK
        return self.call("run", LIST, LOG)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """One driver for all tests: each begins with its initialization."""
    return CoreUnderTest(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def core(compiled):
    compiled.model.stuck = ""
    compiled.model.reset()
    compiled.model.log.clear()
    assert compiled.call("init", None) == OK
    compiled.call("test_poll_limit", 100)
    return compiled


def test_opens_the_whole_memory_to_lists(core):
    assert core.model.values["base"] == 0 and core.model.values["limit"] == CHIP.words
    assert core.model.log[0] == ("irq_enable", 0) and core.model.log[1] == ("control", 1)


@pytest.mark.parametrize("vector, size", [(0, 1), (5, 3), (7, 1021), (3068, 16), (9, 4000)])
def test_memory(core, vector, size):
    data = random.Random(size).randbytes(size)
    before = core.model.board.memory.copy()
    assert core.write(vector, data) == OK
    first, padded = 4 * vector, data.ljust(-(-size // 4) * 4, b"\0")
    before[first : first + len(padded)] = np.frombuffer(padded, np.uint8)
    assert np.array_equal(core.model.board.memory, before)
    assert core.read(vector, size) == (OK, data)


def test_layouts_are_those_of_the_frames(core):
    data, wanted = random.Random(1).randbytes(5 * 8 * 6), NetworkRegisterModel(CHIP).board
    step = split(4, CHIP.banks)
    fields = split(4, CHIP.banks).to_bytes(4, "little") + bytes([5, 3, 8, 0])
    core.model.board.memory[:] = wanted.memory
    wanted.write(fields + step.to_bytes(4, "little") + data)
    assert core.write(4, data, (5, 3, 8, step)) == OK
    assert np.array_equal(core.model.board.memory, wanted.memory)


def test_lists(core):
    assert core.run(ListEnd()) == OK
    assert ("list_address", split(LIST, CHIP.banks)) in core.model.log
    assert ("log_address", split(LOG, CHIP.banks)) in core.model.log
    assert core.call("start", LIST, LOG) == OK
    assert core.call("start", LIST, LOG) == REFUSED
    for _ in range(20):
        if (error := core.call("finish")) != BUSY:
            break
    assert error == OK
    core.call("irq_enable", 1)
    assert core.model.values["irq_enable"] == 1
    assert core.model.values["irq_status"] & 3 == 0


def test_errors_of_lists_have_names(core):
    texts = core.driver._function("error_text")
    texts.restype = ctypes.c_char_p
    load = ListLoad(fill=1, words=8)
    assert core.run(ListLoop(times=0, body=1)) == FIELD
    assert core.write(LIST, bytes(128)) == OK
    assert core.call("run", LIST, LOG) == OPCODE
    assert core.run(ListLoad(source=split(3071, CHIP.banks), words=2), ListEnd()) == ADDRESS
    assert core.run(ListLoad(fill=1, words=2, jobs=1), ListEnd()) == DEADLOCK
    assert core.run(load, ListEnd()) == OK
    found = {texts(error) for error in range(-15, 2)}
    assert len(found) == 17 and b"unknown error" not in found
    assert texts(-16) == b"unknown error"


@pytest.mark.parametrize("stuck", ["write_fifo", "read_fifo", "memory_busy", "list_busy"])
def test_no_wait_is_endless(core, stuck):
    core.model.stuck = stuck
    errors = [core.write(0, b"abcd"), core.read(0, 4)[0], core.call("run", LIST, LOG)]
    assert TIMEOUT in errors and {*errors} <= {OK, TIMEOUT, OPCODE}
    if stuck == "list_busy":
        assert core.model.log[-2:] == [("control", 2), ("irq_status", 3)]
    core.model.stuck = ""
    assert core.write(0, b"abcd") == OK and core.read(0, 4) == (OK, b"abcd")
    assert core.run(ListEnd()) == OK


def test_rejects_before_any_access(core):
    core.model.log.clear()
    assert core.write(3072, b"a") == RANGE
    assert core.write(3071, b"abcde") == RANGE
    assert core.read(3071, 5)[0] == RANGE
    for layout in (0, 1, 1, 0), (256, 1, 1, 0), (1, 0, 1, 0), (1, 256, 1, 0), (1, 1, 65536, 0):
        assert core.write(0, b"a", layout) == RANGE
    assert core.call("write", 0, None, None, 1) == NULL
    assert core.call("read", 0, None, 1) == NULL
    assert core.call("start", 3072, 0) == RANGE
    assert core.driver._function("init")(None, None) == NULL
    assert core.write(3072, b"") == OK and core.read(3072, 0) == (OK, b"")
    assert core.model.log == []


def test_a_time_out_leaves_no_interrupt(core):
    """A handler would not know which list it is of, and would not clear it."""
    assert core.write(LIST, ListEnd().pack()) == OK
    assert core.call("start", LIST, LOG) == OK
    core.model.stuck = "list_busy"
    assert core.call("wait") == TIMEOUT
    assert core.call("is_busy") == 0 and core.model.values["irq_status"] == 0


def test_a_poll_limit_stays(core):
    """An initialization keeps it, so a memory that hangs is found as soon as the user wants."""
    core.call("test_poll_limit", 7)
    assert core.call("init", None) == OK
    core.model.stuck = "memory_busy"
    core.model.log.clear()
    before = core.model.reads
    assert core.write(0, b"a") == TIMEOUT
    assert core.model.reads - before < 20
    core.model.stuck = ""
    core.call("test_poll_limit", 0)  # not set
    assert core.call("init", None) == OK and core.write(0, b"a") == OK


def test_an_abort_of_an_idle_core_does_nothing(core):
    core.model.log.clear()
    core.call("abort")
    assert core.model.log == [] and core.call("is_busy") == 0
    assert core.write(LIST, ListEnd().pack()) == OK
    assert core.call("start", LIST, LOG) == OK and core.call("is_busy") == 1
    core.call("abort")
    assert core.model.log[-1] == ("control", 2)
    assert core.call("finish") == ABORTED


@pytest.mark.parametrize("skew", range(4))
@pytest.mark.parametrize("parts", [(64,), (4, 8, 52), (60, 3), (1,), (16, 16, 5)])
def test_writes_in_parts_from_any_address(core, parts, skew):
    """Words where the memory of the processor is aligned, bytes elsewhere; both ways."""
    data = random.Random(skew).randbytes(sum(parts))
    place, at = ctypes.create_string_buffer(skew * b"-" + data + bytes(8)), skew
    first = ctypes.addressof(place)
    assert first % 4 == 0
    assert core.call("write_begin", 40, None, len(data)) == OK
    for part in parts:
        assert core.call("write_more", ctypes.c_void_p(first + at), part) == OK
        at += part
    assert core.call("write_end") == OK
    found = ctypes.create_string_buffer(b"?" * 90)
    target = ctypes.c_void_p(ctypes.addressof(found) + skew)
    assert core.call("read", 40, target, len(data)) == OK
    assert found.raw[skew : skew + len(data)] == data
    assert found.raw[:skew] == b"?" * skew and found.raw[skew + len(data)] == ord("?")
    assert core.call("write_more", None, 4) == core.driver._function("write_end")(None) == NULL


def test_another_core_is_not_touched(core):
    core.model.board.config = network_core_config(
        2, 4, 4, 2, words=2048, b_words=8, lines=8, read_vectors=2
    )
    core.model.log.clear()
    assert core.call("init", None) == ID
    core.model.board.config = CHIP
    assert core.model.log == []


@pytest.mark.parametrize("old, new, check", [
    ("(uint32_t)from[2] << 16", "(uint32_t)from[2] << 8", lambda core: core.write(0, b"abc")),
    ("WORD_AT(from));\n        for", "WORD_AT(from + 1));\n        for",
     lambda core: core.write(0, b"abcdef")),
    ("LIST_EVENTS);", "0);", lambda core: core.run(ListEnd())),
])
def test_the_model_sees_bugs(tmp_path, old, new, check):
    core = CoreUnderTest(tmp_path, [(old, new)])
    assert check(core) == OK
    good = core.read(0, 3) == (OK, b"abc") and not core.model.values["irq_status"] & 3
    assert not good


def test_needs_no_library_and_is_clean_on_32_bits(tmp_path):
    sources = write_sources(tmp_path, IP, {})
    shared_library(tmp_path, sources, *FREESTANDING, "-O3")
    flags = ["-m32", "-fsyntax-only"]
    probe = [*compiler(), *FREESTANDING, *flags, "-x", "c", "/dev/null"]
    if subprocess.run(probe, capture_output=True).returncode == 0:
        shared_library(tmp_path, sources, *FREESTANDING, *flags)
