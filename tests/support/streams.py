"""Checks of components that pass a stream on: every word once, in order, at its rate."""

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks

__all__ = ["check_transfer", "valid_cycles"]


def check_transfer(
    dut, i, o, words, expected=None, *, idle=0.0, stall=0.0, background=(), limit=10_000
):
    """Send ``words`` to ``i``; ``o`` must have exactly ``expected``, by default the same words."""
    expected = words if expected is None else expected

    async def source(ctx):
        await send(ctx, i, words, idle=idle, seed=1)

    async def sink(ctx):
        assert await receive(ctx, o, len(expected), stall=stall, seed=2) == expected
        await quiet(ctx, o)

    simulate(dut, source, sink, background=[checker(o, "the output"), *background], limit=limit)


def valid_cycles(dut, i, o, words, *, start=0, cycles=90) -> list[int]:
    """The cycles in which ``o`` is valid; ``words`` are sent without gaps from ``start`` on."""
    found = []

    async def source(ctx):
        await ticks(ctx, start)
        await send(ctx, i, words)

    async def sink(ctx):
        ctx.set(o.ready, 1)
        for cycle in range(cycles):
            _, _, valid = await ctx.tick().sample(o.valid)
            found.extend([cycle] * valid)

    simulate(dut, source, sink)
    return found
