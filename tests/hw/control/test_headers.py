"""The header layouts, against the bytes that the host packs."""

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.data import Layout
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import play
from weft import commands
from weft.hw.control.decoder import CommonHeader, JobHeader, LoadHeader, exceeds

JOB = commands.Job(
    m=0x0102, n=0x1112, k=0x21222324, a_page=0x3132, a_pitch=0x4142, a_pages=0x5152,
    b_page=0x6162, b_pitch=0x7172, b_pages=0x8182, c_page=0xA1A2, c_pitch=0xB1B2, c_pages=0xC1C2,
    tag=0x9192,
    flags=commands.JobFlag.FEED_B | commands.JobFlag.KEEP,
)
LOAD = commands.Load(
    operand=1, page=0x3132, pitch=0x0142, panels=0x151, words=0x21222324,
    flags=commands.LoadFlag.FEED | commands.LoadFlag.CONTINUE,
)


def unpack(shape, header):
    size = Layout.cast(shape).size // 8
    return shape.from_bits(int.from_bytes(header.pack()[:size], "little"))


@pytest.mark.parametrize("shape", [JobHeader, LoadHeader])
def test_a_header_is_32_bytes(shape):
    assert shape.as_shape().size == 8 * commands.HEADER_BYTES


@pytest.mark.parametrize("header", [JOB, LOAD], ids=["job", "load"])
def test_common_fields_come_first(header):
    common = unpack(CommonHeader, header)
    assert (common.opcode, common.version) == (header.opcode, commands.VERSION)


def test_job_fields_match_the_packed_bytes():
    header = unpack(JobHeader, JOB)
    spans = [f"{x}_{field}" for x in "abc" for field in ("page", "pitch", "pages")]
    for name in ("m", "n", "k", "tag", *spans):
        assert getattr(header, name) == getattr(JOB, name), name
    assert header.flags == 2 | 8


def test_load_fields_match_the_packed_bytes():
    header = unpack(LoadHeader, LOAD)
    for name in ("operand", "page", "pitch", "panels", "words", "pages", "flags"):
        assert getattr(header, name) == getattr(LOAD, name), name
    assert header.pages == 0x142 * 0x151


class Exceeds(wiring.Component):
    """One bit for each of 1 to 31: ``value`` exceeds it."""

    value: In(8)
    exceeded: Out(31)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.exceeded.eq(Cat(exceeds(self.value, limit) for limit in range(1, 32)))
        return m


def test_exceeds_is_greater_than():
    (found,) = play(Exceeds(), [{"value": value} for value in range(256)], "exceeded")
    assert found == [
        sum((value > limit) << limit - 1 for limit in range(1, 32)) for value in range(256)
    ]
