"""The gate of panels: it compares the numbers of vectors, also outside of the memory."""

import random

import pytest
from network_cores import small_network_core
from side_port import hardware_address

from verif.amaranth_bench import put, simulate
from weft.hw.network_core.steps.panels import PanelGate

CORES = [
    small_network_core(rows, 4, 4, early=True, words=64, **fields)
    for rows, fields in ((2, {}), (4, {}), (1, {"read_vectors": 1}), (1, {"read_vectors": 4}))
]


@pytest.mark.parametrize("config", CORES, ids=lambda c: f"{c.banks} banks")
def test_a_panel_passes_if_its_last_vector_lies_before_the_frontier(config):
    rng, dut, vectors = random.Random(1), PanelGate(config), config.vectors

    async def bench(ctx):
        ctx.set(dut.follows, 1)
        ctx.set(dut.o.ready, 1)
        passed = 0
        for _ in range(400):
            origin, span = rng.randrange(-vectors, vectors), rng.randrange(-vectors, vectors)
            near = origin + span + rng.randint(-2, 2)
            frontier = near if 0 <= near < vectors and rng.random() < 0.7 else (
                rng.randrange(vectors)
            )
            for port, number in (
                (dut.origin, origin), (dut.span, span), (dut.frontier, frontier)
            ):
                put(ctx, port, hardware_address(config, number))
            await ctx.tick()
            put(ctx, dut.i.valid, 1)
            await ctx.tick()
            assert ctx.get(dut.o.valid) == (origin + span < frontier), (origin, span, frontier)
            passed += ctx.get(dut.o.valid)
            ctx.set(dut.i.valid, 0)
            await ctx.tick()
        assert 50 < passed < 350

    simulate(dut, bench)


def test_a_panel_waits_two_cycles_for_the_frontier_and_none_for_the_end():
    config = CORES[0]
    dut = PanelGate(config)

    async def bench(ctx):
        put(ctx, dut.span, hardware_address(config, 5))
        put(ctx, dut.origin, hardware_address(config, 10))
        put(ctx, dut.frontier, hardware_address(config, 15))
        ctx.set(dut.follows, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 1)
        await ctx.tick().repeat(9)
        assert not ctx.get(dut.o.valid)
        put(ctx, dut.frontier, hardware_address(config, 16))
        await ctx.tick()
        assert not ctx.get(dut.o.valid)
        await ctx.tick()
        assert ctx.get(dut.o.valid)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        assert not ctx.get(dut.o.valid), "the next panel is not compared yet"
        ctx.set(dut.follows, 0)
        assert ctx.get(dut.o.valid)

    simulate(dut, bench)
