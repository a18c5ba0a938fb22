"""Benches on Amaranth's simulator: checked stimulus, idle, stall, stream protocol, a watchdog."""

import functools
import random

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data
from amaranth.sim import Simulator

__all__ = [
    "ProtocolError", "checker", "plain", "play", "put", "quiet", "receive", "send", "simulate",
    "ticks",
]


class ProtocolError(AssertionError):
    """A stream that broke its promise: a word offered stays until it is taken."""


def simulate(dut, *benches, background=(), limit=10_000):
    """Run ``benches`` (``async def bench(ctx)``) on ``dut`` to their ends.

    Those in ``background`` ride along. Raises TimeoutError where a bench has not ended after
    ``limit`` cycles.
    """
    m = Module()
    m.submodules.dut = dut
    m.d.sync += Signal(name="alive").eq(1)  # a clock domain, even where the block needs none
    waiting = set(range(len(benches)))

    def tracked(index, bench):
        async def run(ctx):
            await bench(ctx)
            waiting.discard(index)
        return run

    async def watchdog(ctx):
        await ticks(ctx, limit)
        names = ", ".join(benches[index].__name__ for index in sorted(waiting))
        raise TimeoutError(f"a simulation must end within {limit} cycles; still running: {names}")

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    for bench in (watchdog, *background):
        simulator.add_testbench(bench, background=True)
    for index, bench in enumerate(benches):
        simulator.add_testbench(tracked(index, bench))
    simulator.run()


def put(ctx, target, value):
    """``ctx.set``, but ValueError for a value that the target does not hold and would cut."""
    _check(target.shape(), value)
    ctx.set(target, value)


def _check(shape, value):
    if isinstance(value, (dict, list, tuple)):
        layout = data.Layout.cast(shape)
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            _check(layout[key].shape, member)
        return
    width, signed = Shape.cast(shape).width, Shape.cast(shape).signed
    low, high = (-(1 << width - 1), 1 << width - 1) if signed else (0, 1 << width)
    if not low <= int(value) < high:
        raise ValueError(f"a value of {width} bits must be in {low}..{high - 1}, not {int(value)}")


def plain(value):
    """A sample as Python ints, in dicts and lists where it has a layout."""
    if not isinstance(value, data.Const):
        return int(value)
    layout = data.Layout.cast(value.shape())
    members = {key: plain(value[key]) for key, _ in layout}
    return list(members.values()) if isinstance(layout, data.ArrayLayout) else members


def play(dut, script, *watched, tail=0):
    """What ports ``watched`` hold in each cycle while ``script`` sets ports, a dict a cycle.

    Ports are named, those of a stream with a dot. ``tail`` more cycles follow the script. The
    answer is a list of samples for each port watched.
    """
    samples = [[] for _ in watched]

    def port(name):
        return functools.reduce(getattr, name.split("."), dut)

    async def bench(ctx):
        ports = [port(name) for name in watched]
        for cycle in [*script, *({} for _ in range(tail))]:
            for name, value in cycle.items():
                put(ctx, port(name), value)
            _, _, *values = await ctx.tick().sample(*ports)
            for trace, value in zip(samples, values, strict=True):
                trace.append(plain(value))

    simulate(dut, bench, limit=len(script) + tail + 2)
    return samples


async def ticks(ctx, count):
    """``count`` cycles; ``ctx.tick().repeat`` complains where a failure elsewhere ends the run."""
    for _ in range(count):
        await ctx.tick()


async def send(ctx, stream, payloads, *, idle=0, seed=0):
    """Give ``payloads`` to a stream; before each, cycles without one, each with odds ``idle``."""
    rng = random.Random(seed)
    raw = Value.cast(stream.payload)
    for payload in payloads:
        while rng.random() < idle:
            ctx.set(raw, rng.getrandbits(max(1, len(raw))))
            await ctx.tick()
        put(ctx, stream.payload, payload)
        ctx.set(stream.valid, 1)
        while not (await ctx.tick().sample(stream.ready))[-1]:
            pass
        ctx.set(stream.valid, 0)


async def receive(ctx, stream, count, *, stall=0, seed=0, until=None):
    """Take ``count`` payloads, or up to the first for which ``until`` holds.

    In each cycle one is refused with odds ``stall``.
    """
    rng = random.Random(seed)
    taken = []
    while len(taken) < count:
        ready = rng.random() >= stall
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if valid and ready:
            taken.append(plain(payload))
            if until and until(taken[-1]):
                break
    ctx.set(stream.ready, 0)
    return taken


async def quiet(ctx, stream, cycles=20):
    """Raise ProtocolError where a stream that should have ended offers another word."""
    ctx.set(stream.ready, 1)
    for cycle in range(cycles):
        _, _, valid = await ctx.tick().sample(stream.valid)
        if valid:
            raise ProtocolError(f"a stream must end empty, not offer a word {cycle} cycles on")
    ctx.set(stream.ready, 0)


def checker(stream, name, reset=None):
    """A background bench: ProtocolError where ``stream`` takes back or changes a word offered.

    A ``reset`` may take it back.
    """
    resets = () if reset is None else (reset,)

    async def check(ctx):
        held = None
        ports = stream.valid, stream.ready, Value.cast(stream.payload), *resets
        while True:
            _, _, valid, ready, payload, *reset = await ctx.tick().sample(*ports)
            if held is not None and not valid:
                raise ProtocolError(f"{name} must hold valid until ready, not drop it")
            if held is not None and payload != held:
                words = f"0x{held:x} until ready, not change it to 0x{payload:x}"
                raise ProtocolError(f"{name} must hold its word {words}")
            held = payload if valid and not ready and not any(reset) else None

    return check
