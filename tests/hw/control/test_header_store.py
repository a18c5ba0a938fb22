"""The stored header, against a model that works on whole fields."""

import functools
import random

import pytest
from tiers import quick

from verif.amaranth_bench import play
from weft.commands import HEADER_BYTES, Job, JobFlag, Load, supported_flags
from weft.config import Config
from weft.geometry import memories
from weft.hw.control.decoder import HeaderStore, JobHeader, LoadHeader, header_bits

CONFIGS = [
    Config(target="ice40up", rows=2, cols=2, depth=4, a_words=256, b_words=256, bytes_in=4),
    Config(target="ice40hx", rows=3, cols=5, depth=1, a_words=4096, b_words=64, activation="none"),
]


@functools.cache
def store(bytes_in, bits):
    """The component, elaborated once for all headers of a Config."""
    return HeaderStore(bytes_in=bytes_in, bits=[*bits])


def stored(config, header, bytes_in):
    """The bytes of ``header`` as the store of a core with ``config`` gives them."""
    bits = header_bits(memories(config), supported_flags(config))
    data = header.pack()
    script = [
        {
            "write": 1, "word": n,
            "data": int.from_bytes(data[n * bytes_in :][:bytes_in], "little"),
        }
        for n in range(HEADER_BYTES // bytes_in)
    ]
    (values,) = play(store(bytes_in, tuple(bits)), script, "header", tail=1)
    return values[-1]


def field(shape, value, name):
    part = shape.as_shape()[name]
    return value >> part.offset & (1 << part.width) - 1


@pytest.mark.parametrize("bytes_in", quick(1, [4, 1, 32]))
@pytest.mark.parametrize("config", CONFIGS)
def test_a_job_that_fits_the_core_is_stored_exactly(config, bytes_in):
    rng = random.Random(bytes_in)
    a, b, *_ = memories(config).values()
    for _ in range(9):
        numbers = {
            "m": rng.randint(0, a.pages * a.edge), "n": rng.randint(0, b.pages * b.edge),
            "k": rng.randint(0, min(a.words, b.words) * a.depth), "tag": rng.randrange(1 << 16),
            "flags": rng.randrange(1 << int(supported_flags(config)).bit_length()),
        }
        for x, g in (("a", a), ("b", b)):
            numbers |= {f"{x}_page": rng.randrange(g.pages)}
            numbers |= {f"{x}_{size}": rng.randint(0, g.pages) for size in ("pitch", "pages")}
        job = Job(**numbers | {"flags": JobFlag(numbers["flags"])})
        value = stored(config, job, bytes_in)
        for name, number in numbers.items():
            assert field(JobHeader, value, name) == number, name


@pytest.mark.parametrize("config", CONFIGS)
def test_a_load_that_fits_the_core_is_stored_exactly(config):
    rng = random.Random(1)
    geometries = memories(config)
    for operand, g in geometries.items():
        numbers = {
            "operand": operand, "page": rng.randrange(g.pages), "pitch": rng.randint(0, g.pages),
            "panels": rng.randint(0, g.pages), "words": rng.randint(0, g.words),
        }
        value = stored(config, Load(**numbers), 4)
        for name, number in numbers.items():
            assert field(LoadHeader, value, name) == number, name


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ["m", "n", "k"])
def test_a_size_that_is_too_large_stays_too_large(config, name):
    a, b, *_ = memories(config).values()
    largest = {
        "m": a.pages * a.edge, "n": b.pages * b.edge, "k": min(a.words, b.words) * a.depth,
    }[name]
    width = JobHeader.as_shape()[name].width
    sizes = dict.fromkeys(("m", "n", "k", "a_page", "a_pitch", "a_pages"), 1)
    sizes |= dict.fromkeys(("b_page", "b_pitch", "b_pages"), 1)
    for value in {largest + 1, *(1 << bit for bit in range(largest.bit_length(), width))}:
        assert field(JobHeader, stored(config, Job(**sizes | {name: value}), 4), name) > largest


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ["panels", "words"])
def test_a_load_that_is_too_large_stays_too_large(config, name):
    geometries = memories(config).values()
    largest = max(g.pages if name == "panels" else g.words for g in geometries)
    sizes = {"operand": 0, "page": 0, "pitch": 0, "panels": 1, "words": 1}
    for value in {largest + 1, *(1 << bit for bit in range(largest.bit_length(), 32))}:
        assert field(LoadHeader, stored(config, Load(**sizes | {name: value}), 4), name) > largest


@pytest.mark.parametrize("config", CONFIGS)
def test_an_unsupported_flag_or_operand_stays_so(config):
    sizes = dict.fromkeys(("m", "n", "k", "a_page", "a_pitch", "a_pages"), 1)
    sizes |= dict.fromkeys(("b_page", "b_pitch", "b_pages"), 1)
    supported = int(supported_flags(config))
    for bit in range(16):
        value = stored(config, Job(**sizes | {"flags": JobFlag(1 << bit)}), 4)
        unsupported = field(JobHeader, value, "flags") & ~supported
        assert bool(unsupported) == (not supported >> bit & 1)
    for operand in {*range(8), *(1 << bit for bit in range(8)), 0x81, 0xFF}:
        load = {"operand": operand, "page": 0, "pitch": 0, "panels": 1, "words": 1}
        found = field(LoadHeader, stored(config, Load(**load), 4), "operand")
        assert (found in memories(config)) == (operand in memories(config))
