"""The write combiner: units become beats; a burst ends with its row, and with a block."""

import pytest

from verif.amaranth_bench import play
from weft.hw.dma.writer import WriteCombiner, WriteUnit


def units(rows, word=0x0F0E0D0C0B0A09080706050403020100):
    """A script of rows (address, bytes) in units of 4 bytes, all from the same word."""
    for n, (address, size) in enumerate(rows):
        for index, at in enumerate(range(0, max(size, 1), 4)):
            yield {"units": {"valid": 1, "unit": {
                "word": word, "narrow": 0, "index": index % 4, "addr": address + at,
                "last_byte": size - at - 1, "last_row": n == len(rows) - 1,
            }}}
    yield {"units": {"valid": 0, "unit": dict.fromkeys(WriteUnit(
        data_bytes=16, max_index=4, row_bytes=64).members, 0)}}


def beats(rows, *more):
    dut = WriteCombiner(
        unit_sizes=[4], unit=WriteUnit(data_bytes=16, max_index=4, row_bytes=64), data_bytes=16
    )
    (samples,) = play(dut, [{"tag": 7, "status": 1}, *units(rows), *more], "beats", tail=4)
    return [beat["beat"] for beat in samples if beat["valid"]]


def fields(beat, *names):
    return tuple(beat[name] for name in names)


def test_a_row_is_a_burst():
    found = beats([(0x104, 19)])
    assert [fields(b, "strb", "last", "index", "job_last") for b in found] == [
        (0xFFF0, 0, 0, 0), (0x007F, 1, 1, 1)
    ]
    assert found[1]["addr"] == 0x100
    # Part n of the word at address 0x104 + 4 n, the fifth being part 0 again.
    assert found[0]["data"] >> 32 == 0x0B0A09080706050403020100
    assert found[1]["data"] & 0xFFFFFFFFFFFFFF == 0x0201000F0E0D0C
    assert fields(found[1], "tag", "status", "no_data") == (7, 0, 0)


def test_a_burst_ends_where_a_block_ends():
    found = beats([(0x2F4, 32)])  # a block has 16 beats of 16 bytes
    assert [fields(b, "strb", "last") for b in found] == [(0xFFF0, 1), (0xFFFF, 0), (0x000F, 1)]
    assert [fields(b, "addr", "index") for b in found if b["last"]] == [(0x2F0, 0), (0x300, 1)]


def test_units_beyond_the_row_leave_no_trace():
    found = beats([(0x10, 0), (0x20, 1)])
    assert [fields(b, "strb", "last", "job_last") for b in found] == [(1, 1, 1)]


@pytest.mark.parametrize("rows, expected", [
    ([(0x20, 64)], (0, 1, 1, 1)),
    ([], (0, 1, 1, 1)),
])
def test_a_cancel_between_bursts_ends_the_job(rows, expected):
    last = beats(rows, {"cancel": 1}, {"cancel": 0})[-1]
    assert fields(last, "strb", "last", "no_data", "job_last")[1:] == expected[1:]
    assert fields(last, "tag", "status") == (7, 1)


@pytest.mark.parametrize("size, strobes, count", [(4, 0xF, 0), (16, 0, 1), (20, 0xF, 1)])
def test_a_cancel_within_a_burst_ends_it(size, strobes, count):
    """Only ``size`` bytes of a row of 64 bytes came."""
    dut_rows = [*units([(0x20, 64)])][: size // 4]
    unit = WriteUnit(data_bytes=16, max_index=4, row_bytes=64)
    dut = WriteCombiner(unit_sizes=[4], unit=unit, data_bytes=16)
    script = [{"tag": 7, "status": 1}, *dut_rows, {"units.valid": 0, "cancel": 1}, {"cancel": 0}]
    (samples,) = play(dut, script, "beats", tail=4)
    last = [beat["beat"] for beat in samples if beat["valid"]][-1]
    assert fields(last, "strb", "last", "no_data", "job_last") == (strobes, 1, 0, 1)
    assert fields(last, "addr", "index", "status") == (0x20, count, 1)
