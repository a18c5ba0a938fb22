"""Headers, byte by byte, against the tables of ``docs/interfaces.md``."""

import random
import re
import struct
from pathlib import Path

import pytest

from weft.commands import HEADER_BYTES, VERSION, Job, JobFlag, Load, LoadFlag, Opcode, Status

INTERFACES = Path(__file__).parent.parent / "docs" / "interfaces.md"
# field: first byte, bytes
JOB = {
    "tag": (2, 2), "flags": (4, 2), "m": (8, 4), "n": (12, 4), "k": (16, 4),
    "a_page": (20, 2), "a_pitch": (22, 2), "b_page": (24, 2), "b_pitch": (26, 2),
    "a_pages": (28, 2), "b_pages": (30, 2),
}
LOAD = {
    "operand": (2, 1), "flags": (3, 1), "page": (4, 2), "pitch": (6, 2), "panels": (8, 4),
    "words": (12, 4),
}
ZERO_JOB, ZERO_LOAD = dict.fromkeys(JOB, 0), dict.fromkeys(LOAD, 0)
fields_of_jobs = pytest.mark.parametrize("name", JOB)
fields_of_loads = pytest.mark.parametrize("name", LOAD)


def job(**fields):
    return Job(**{**ZERO_JOB, **fields})


def load(**fields):
    return Load(**{**ZERO_LOAD, **fields})


def expected(opcode, places, fields):
    """A header put together by hand."""
    data = bytearray(32)
    data[0], data[1] = opcode, 1
    for name, value in fields.items():
        start, size = places[name]
        data[start : start + size] = value.to_bytes(size, "little")
    return bytes(data)


def test_a_header_is_32_bytes_of_version_1():
    assert (HEADER_BYTES, VERSION) == (32, 1)
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


@pytest.mark.parametrize("flags, title", [
    (JobFlag, "job flag"), (LoadFlag, "load flag"), (Status, "status bit"),
])
def test_flags_are_those_of_the_page(flags, title):
    text = INTERFACES.read_text(encoding="utf-8")
    table = text[text.index(f"| {title} |") :].split("\n\n")[0]
    page = {name: 1 << int(bit) for bit, name in re.findall(r"^\| (\d+) \| (\w+) \|", table, re.M)}
    assert {flag.name: flag.value for flag in flags} == page
