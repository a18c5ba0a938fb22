"""Weights of int4 from a stream with gaps, under back-pressure, tile after tile."""

import numpy as np
import pytest

from verif.amaranth_bench import pulse, put, receive, send, simulate
from weft.golden.int4 import unpack
from weft.hw.language_core.unpacker import Int4Unpacker
from weft.language_core.descriptors import packed_beats
from weft.models.language_core.image import packed_words

DUT = Int4Unpacker()


def _tiles(words, tiles):
    """The beats of packed tiles without those that fill a word; and their weights, 16 a beat."""
    rng = np.random.default_rng(words)
    scales = rng.integers(1, 16, (8 * tiles, words)).astype(np.uint8)
    weights = unpack(rng.integers(-8, 8, (8 * tiles, 16 * words)).astype(np.int8), scales)
    beats = packed_words(weights, scales).reshape(tiles, -1, 16)[:, : packed_beats(words)]
    expected = weights.reshape(tiles, 8, words, 16).swapaxes(1, 2)
    return beats.reshape(-1, 16), expected.reshape(-1, 16)


def _numbers(beats):
    return [int.from_bytes(beat.tobytes(), "little") for beat in beats]


@pytest.mark.parametrize("idle, stall", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)])
def test_tiles_of_both_kinds(idle, stall):
    """The jobs follow each other without a reset."""
    async def run(ctx):
        for words, tiles in ((2, 3), (9, 2), (0, 5), (4, 2)):
            beats, expected = _tiles(words, tiles) if words else (_RAW, _RAW)
            put(ctx, DUT.packed, words > 0)
            put(ctx, DUT.further, max(words - 1, 0))
            await pulse(ctx, DUT.start)
            found.append((_numbers(beats), _numbers(expected)))
            while found:
                await ctx.tick()

    async def give(ctx):
        while True:
            while not found:
                await ctx.tick()
            await send(ctx, DUT.i, found[0][0], idle=idle)
            while found:
                await ctx.tick()

    async def take(ctx):
        while True:
            while not found:
                await ctx.tick()
            assert await receive(ctx, DUT.o, len(found[0][1]), stall=stall) == found[0][1]
            assert not ctx.get(DUT.busy)
            found.pop()

    found = []
    simulate(DUT, run, background=[give, take], limit=4000)


_RAW = np.random.default_rng(5).integers(0, 256, (5, 16)).astype(np.uint8)


def test_a_beat_of_codes_leaves_in_two_cycles():
    """So a memory with a beat every two cycles never waits."""
    async def run(ctx):
        put(ctx, DUT.packed, 1)
        put(ctx, DUT.further, 3)
        await pulse(ctx, DUT.start)
        put(ctx, DUT.o.ready, 1)
        for beat in _numbers(_tiles(4, 1)[0]):
            put(ctx, DUT.i.payload, beat)
            put(ctx, DUT.i.valid, 1)
            assert ctx.get(DUT.i.ready)
            await ctx.tick()
            put(ctx, DUT.i.valid, 0)
            await ctx.tick()

    simulate(DUT, run)
