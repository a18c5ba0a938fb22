"""The loader against loops over panels, words and segments."""

import random

import pytest

from verif.amaranth_bench import plain, play
from weft.commands import Load, LoadFlag, Region
from weft.geometry import Operand
from weft.hw.control.decoder import LoadHeader
from weft.hw.control.job_table import Loader

PAIRS = [  # edge and depth of A and of B, bytes in
    pytest.param((1, 1), (1, 1), 1, id="bytes"),
    pytest.param((3, 1), (5, 1), 16, id="group-4-and-2"),
    pytest.param((1, 1), (8, 4), 16, id="group-16-and-segments-2"),
    pytest.param((5, 3), (7, 2), 4, id="segments-4"),
    pytest.param((1, 2), (3, 2), 64, id="group-16-and-8"),
]


ALL = list(Region)


def geometries(a, b, stream, regions=ALL):
    """Geometries of A, B, parameters with 4 words a page, the table, and C."""
    all_regions = {
        Region.A: Operand(*a, 64, stream), Region.B: Operand(*b, 128, stream),
        Region.PARAMETERS: Operand(2, 16, 32, stream, page=4),
        Region.TABLE: Operand(1, 1, 256, stream, page=256),
        Region.C: Operand(b[0], 1, 64, stream, page=1, size=4),
    }
    return {region: all_regions[region] for region in regions}


def header(load):
    return plain(LoadHeader.from_bits(int.from_bytes(load.pack(), "little")))


def writes(load, geometry, words):
    """The expected writes of a load, one for each stream word."""
    words = iter(words)
    for panel in range(load.panels):
        page = load.page + panel * load.pitch
        for first in range(0, load.words, geometry.group):
            for segment in range(geometry.segments):
                last_segment = segment == geometry.segments - 1
                next_first = first + geometry.group
                yield {
                    "line": (geometry.page * page + first) // geometry.group,
                    "segment": segment,
                    "data": next(words),
                    "begin": int(not first and not segment and LoadFlag.CONTINUE not in load.flags),
                    "end": int(last_segment and next_first >= load.words),
                    "page": page + first // geometry.page,
                }


def size(load, geometry):
    return load.panels * -(-load.words // geometry.group) * geometry.segments


def loads(rng, pair, count):
    """Loads within their buffers: full buffers, single words, and sizes between."""
    for n in range(count):
        operand = list(pair)[n % len(pair)]
        geometry = pair[operand]
        words = rng.choice([1, 16, 17, rng.randint(1, geometry.words)])
        if operand in (Region.PARAMETERS, Region.TABLE):
            words = min(geometry.words, rng.randint(1, 3 * geometry.page))
        pages = -(-words // geometry.page)
        pitch = min(geometry.pages, pages + (rng.randrange(2) if words < 33 else 0))
        panels = rng.randint(1, max(1, geometry.pages // pitch))
        page = rng.randint(0, geometry.pages - 1 - (panels - 1) * pitch - (pages - 1))
        yield Load(operand, page, pitch, panels, words, LoadFlag(rng.randrange(4)))


@pytest.mark.parametrize("a, b, stream", PAIRS)
@pytest.mark.parametrize("idle, regions", [
    (0.5, ALL[:2]), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (0.5, ALL), (0, [Region.A, Region.B, Region.C]),
        (0, [Region.A, Region.B, Region.PARAMETERS, Region.C]),
    )),
    pytest.param(0, ALL, marks=pytest.mark.long),
])
def test_every_word_is_written_to_its_place(a, b, stream, idle, regions):
    rng = random.Random(stream)
    pair = geometries(a, b, stream, regions)
    script, expected = [], []
    for load in loads(rng, pair, 16):
        # The payload is valid one cycle before `valid`.
        for valid in (0, 1):
            script.append({"load.valid": valid, "load.payload": header(load), "words.valid": 0})
            expected.append(None)
        words = [rng.randrange(1 << 8 * stream) for _ in range(size(load, pair[load.operand]))]
        load_writes = list(writes(load, pair[load.operand], words))
        for n, write in enumerate(load_writes):
            while rng.random() < idle:
                script.append({"load.valid": 0, "words.valid": 0})
                expected.append(None)
            script.append({"load.valid": 0, "words.valid": 1, "words.payload": words[n]})
            is_last, is_feed = n == len(load_writes) - 1, LoadFlag.FEED in load.flags
            expected.append((load.operand, write, is_last, is_feed))
    dut = Loader(geometries=pair, bytes_in=stream)
    names = ("a", "b", "parameters", "table", "c")
    assert dut.names == {region: names[region] for region in regions}
    script.append({"load.valid": 0, "words.valid": 0})
    *ports, last, feed = play(dut, script, *dut.names.values(), "last", "feed")
    # A write leaves one cycle after its word arrives.
    ports = {region: port[1:] for region, port in zip(regions, ports, strict=True)}
    for n, cycle in enumerate(expected):
        valid = {region: port[n]["valid"] for region, port in ports.items()}
        if cycle is None:
            assert not any(valid.values())
            continue
        operand, write, is_last, is_feed = cycle
        assert valid == {region: region == operand for region in regions}
        assert ports[operand][n]["write"] == write
        assert (last[n], feed[n]) == (is_last, is_feed)


def test_accepts_a_word_every_cycle():
    dut = Loader(geometries=geometries((1, 1), (1, 1), 1), bytes_in=1)
    assert play(dut, [{}], "load.ready", "words.ready") == [[1], [1]]
