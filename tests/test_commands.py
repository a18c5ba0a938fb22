"""Headers, byte by byte, against the tables of ``docs/interfaces.md``."""

import random
import re
import struct
from pathlib import Path

import pytest

from weft.commands import (
    HEADER_BYTES,
    TABLE_ENTRIES,
    VERSION,
    Job,
    JobFlag,
    Load,
    LoadFlag,
    Opcode,
    Region,
    Status,
    epilogue_flags,
    result,
    supported_flags,
)
from weft.config import Config
from weft.dtypes import DTYPES
from weft.hw.output.requantizer import Parameter

INTERFACES = Path(__file__).parent.parent / "docs" / "interfaces.md"
# field: first byte, bytes
JOB = {
    "tag": (2, 2), "flags": (4, 2), "m": (6, 2), "k": (8, 4), "n": (12, 2),
    "a_page": (14, 2), "a_pitch": (16, 2), "a_pages": (18, 2),
    "b_page": (20, 2), "b_pitch": (22, 2), "b_pages": (24, 2),
    "c_page": (26, 2), "c_pitch": (28, 2), "c_pages": (30, 2),
}
LOAD = {
    "operand": (2, 1), "flags": (3, 1), "page": (4, 2), "pitch": (6, 2), "panels": (8, 4),
    "words": (12, 4),
}
PARAMETERS = {  # of int8, and whether it is signed
    "bias": (0, 4, True), "multiplier": (4, 4, False), "shift": (8, 1, True),
    "zero point of B": (9, 1, True), "zero point of the result": (10, 2, True),
    "lower limit": (12, 2, True), "upper limit": (14, 2, True),
}
ZERO_JOB, ZERO_LOAD = dict.fromkeys(JOB, 0), dict.fromkeys(LOAD, 0)
fields_of_jobs = pytest.mark.parametrize("name", JOB)
fields_of_loads = pytest.mark.parametrize("name", LOAD)
fields_of_parameters = pytest.mark.parametrize("name", PARAMETERS)


def job(**fields):
    return Job(**{**ZERO_JOB, **fields})


def load(**fields):
    return Load(**{**ZERO_LOAD, **fields})


def entry(**fields):
    return DTYPES["int8"].parameter.pack(*({**dict.fromkeys(PARAMETERS, 0), **fields}.values()))


def expected(opcode, places, fields):
    """A header put together by hand."""
    data = bytearray(32)
    data[0], data[1] = opcode, 2
    for name, value in fields.items():
        start, size = places[name]
        data[start : start + size] = value.to_bytes(size, "little")
    return bytes(data)


def test_a_header_is_32_bytes_of_version_2():
    assert (HEADER_BYTES, VERSION) == (32, 2)
    assert (Opcode.JOB, Opcode.LOAD) == (1, 2)
    assert len(job().pack()) == len(load().pack()) == 32


@fields_of_jobs
def test_a_field_of_a_job_is_in_its_place(name):
    value = int.from_bytes(bytes(range(0x81, 0x81 + JOB[name][1])), "little")
    assert job(**{name: value}).pack() == expected(1, JOB, {name: value})


@fields_of_loads
def test_a_field_of_a_load_is_in_its_place(name):
    value = int.from_bytes(bytes(range(0x81, 0x81 + LOAD[name][1])), "little")
    assert load(**{name: value}).pack() == expected(2, LOAD, {name: value})


def test_a_load_tells_the_pages_that_it_spans():
    one = load(pitch=0x1234, panels=0x567)
    assert one.pages == 0x1234 * 0x567
    assert one.pack()[16:20] == (0x1234 * 0x567).to_bytes(4, "little")


def test_any_job_comes_back():
    rng = random.Random(1)
    for _ in range(200):
        fields = {name: rng.randrange(1 << 8 * size) for name, (_, size) in JOB.items()}
        one = job(**{**fields, "flags": JobFlag(fields["flags"])})
        assert Job.unpack(one.pack()) == one


def test_any_load_comes_back():
    rng = random.Random(2)
    for _ in range(200):
        fields = {name: rng.randrange(1 << 8 * size) for name, (_, size) in LOAD.items()}
        fields["panels"] %= 1 << 16  # the pages spanned must fit, too
        one = load(**{**fields, "flags": LoadFlag(fields["flags"])})
        assert Load.unpack(one.pack()) == one


def test_flags_come_back_as_flags():
    assert isinstance(Job.unpack(job().pack()).flags, JobFlag)
    assert isinstance(Load.unpack(load().pack()).flags, LoadFlag)


@fields_of_jobs
@pytest.mark.parametrize("over", [False, True])
def test_rejects_a_job_that_does_not_fit(name, over):
    with pytest.raises(struct.error):
        job(**{name: 1 << 8 * JOB[name][1] if over else -1}).pack()


@fields_of_loads
@pytest.mark.parametrize("over", [False, True])
def test_rejects_a_load_that_does_not_fit(name, over):
    with pytest.raises(struct.error):
        load(**{name: 1 << 8 * LOAD[name][1] if over else -1}).pack()


def test_rejects_a_load_that_spans_too_much():
    with pytest.raises(struct.error):
        load(pitch=1 << 15, panels=1 << 17).pack()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_rejects_a_header_of_another_size(size):
    for command in (Job, Load):
        with pytest.raises(struct.error):
            command.unpack(bytes(size))


@fields_of_parameters
def test_a_field_of_an_entry_is_in_its_place(name):
    start, size, signed = PARAMETERS[name]
    data = bytearray(16)
    data[start : start + size] = range(0x81, 0x81 + size)
    value = int.from_bytes(data[start : start + size], "little", signed=signed)
    assert entry(**{name: value}) == bytes(data)
    assert DTYPES["int8"].parameter.unpack(data)[list(PARAMETERS).index(name)] == value


@fields_of_parameters
def test_rejects_an_entry_that_does_not_fit(name):
    _, size, signed = PARAMETERS[name]
    high = 1 << 8 * size - signed
    low = -high if signed else 0
    assert len(entry(**{name: low})) == len(entry(**{name: high - 1})) == 16
    for value in (low - 1, high):
        with pytest.raises(struct.error):
            entry(**{name: value})


def test_an_entry_is_that_of_the_page():
    assert DTYPES["int8"].parameter.size == 16
    rows = re.findall(r"^\| (\d+) \| ([\w ]+) \((\d+)\)", page_table("| byte | int8 field |"), re.M)
    page = {name: (int(start), int(bits) // 8) for start, name, bits in rows}
    assert page == {name: place[:2] for name, place in PARAMETERS.items()}


def test_the_hardware_reads_an_entry_as_it_is_packed():
    data = bytes(range(0x77, 0x87))  # numbers of either sign
    names = ("bias", "multiplier", "shift", "b_zero", "zero", "low", "high")
    read = Parameter.from_bits(int.from_bytes(data, "little"))
    assert Parameter.as_shape().size == 8 * DTYPES["int8"].parameter.size
    assert tuple(read[name] for name in names) == DTYPES["int8"].parameter.unpack(data)


@pytest.mark.parametrize("config, flags, name", [
    (Config(), JobFlag.TABLE, "int32"), (Config(), JobFlag.REQUANTIZE | JobFlag.TABLE, "int8"),
    (Config(requantize="none"), JobFlag.REQUANTIZE, "int32"),
    (Config(dtype="bf16"), JobFlag.CLAMP | JobFlag.PRELOAD, "float32"),
    (Config(dtype="bf16"), JobFlag.ROUND, "bfloat16"),
])
def test_results_are_sums_or_narrow(config, flags, name):
    assert result(config, flags).name == name


def test_limits_are_two_floats():
    assert DTYPES["bf16"].parameter.pack(-1.5, float("inf")) == bytes.fromhex("0000c0bf 0000807f")
    table = page_table("| byte | bf16 field |")
    rows = re.findall(r"^\| (\d+) \| ([\w ]+) \(float32\)", table, re.M)
    assert rows == [("0", "lower limit"), ("4", "upper limit")]


def test_regions_are_those_of_the_page():
    said = re.search(r"operand: (.*?) \|", INTERFACES.read_text(encoding="utf-8"))[1]
    assert said == "0 A, 1 B, 2 parameters, 3 table, 4 C"
    numbers = [("A", 0), ("B", 1), ("PARAMETERS", 2), ("TABLE", 3), ("C", 4)]
    assert [(region.name, region.value) for region in Region] == numbers


ALWAYS = JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.ACCUMULATE | JobFlag.KEEP
START = JobFlag.PRELOAD | JobFlag.BROADCAST


@pytest.mark.parametrize("config, finish, start", [
    (Config(), (JobFlag.REQUANTIZE, JobFlag.TABLE), 0),
    (Config(activation="none"), (JobFlag.REQUANTIZE,), 0),
    (Config(requantize="none"), (), 0),
    (Config(dtype="bf16"), (JobFlag.ROUND, JobFlag.CLAMP), START),
    (Config(dtype="bf16", activation="none"), (JobFlag.ROUND,), START),
    (Config(dtype="bf16", c_words=0), (JobFlag.ROUND, JobFlag.CLAMP), 0),
])
def test_a_core_knows_the_flags_of_its_config(config, finish, start):
    assert epilogue_flags(config) == finish
    assert supported_flags(config) == ALWAYS | sum(finish) | start
    assert isinstance(supported_flags(config), JobFlag)


def test_a_table_has_an_entry_for_each_byte():
    assert TABLE_ENTRIES == len(bytes(range(256)))


def page_table(head):
    """The table of the page that starts so."""
    text = INTERFACES.read_text(encoding="utf-8")
    return text[text.index(head) :].split("\n\n")[0]


@pytest.mark.parametrize("flags, title", [
    (JobFlag, "job flag"), (LoadFlag, "load flag"), (Status, "status bit"),
])
def test_flags_are_those_of_the_page(flags, title):
    table = page_table(f"| {title} |")
    page = {name: 1 << int(bit) for bit, name in re.findall(r"^\| (\d+) \| (\w+) \|", table, re.M)}
    assert {flag.name: flag.value for flag in flags} == page
