"""A fixture for tests of decoders: all output fields for many inputs."""

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, Value
from amaranth.lib import data

from verif.amaranth_bench import put, simulate, ticks

LANES = 64


@pytest.fixture(scope="session")
def decoded():
    """``decoded(decoder, bits)``: for each field, by name, its values for ``bits``, as an array.

    Many decoders run in parallel, which makes the simulation fast.
    """
    return _decoded


def _decoded(decoder, bits):
    lanes = [decoder() for _ in range(LANES)]
    row = Module()
    row.submodules += lanes
    found = []

    async def bench(ctx):
        for first in range(0, len(bits), LANES):
            batch = list(zip(lanes, bits[first : first + LANES].tolist(), strict=False))
            for lane, value in batch:
                put(ctx, lane.i, value)
            await ticks(ctx, decoder.LATENCY)
            found.extend(ctx.get(Value.cast(lane.o)) for lane, _ in batch)

    simulate(row, bench)
    raw = np.array(found)
    return {name: _field(raw, field) for name, field in data.Layout.cast(lanes[0].o.shape())}


def _field(raw, field):
    shape = Shape.cast(field.shape)
    values = raw >> field.offset & (1 << shape.width) - 1
    return values - (values >> shape.width - 1 << shape.width) if shape.signed else values
