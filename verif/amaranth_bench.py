"""Helpers for benches on Amaranth's simulator: stimulus, stream drivers, checkers, a watchdog."""

import functools
import random

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data
from amaranth.sim import BrokenTrigger, Simulator

from verif.amaranth_engine import Engine, pack, unpack

__all__ = [
    "BenchContext", "ProtocolError", "checker", "plain", "play", "pulse", "put", "quiet", "receive",
    "send", "simulate", "ticks",
]

PERIOD = 1e-6  # seconds of a clock cycle


class ProtocolError(AssertionError):
    """A violation of the stream protocol: a valid word must stay until it is taken."""


def simulate(dut, *benches, background=(), limit=10_000):
    """Run ``benches`` (``async def bench(ctx)``) on ``dut`` until all of them have returned.

    The benches in ``background`` run until then. Raises TimeoutError if a bench has not returned
    after ``limit`` cycles. Each run starts after a reset. A second run of a ``dut`` is faster: it
    uses the simulator of the first one.
    """
    running = set(range(len(benches)))

    def tracked(index, bench):
        async def run(ctx):
            with ctx.critical():
                await bench(ctx)
            running.discard(index)
        return run

    async def watchdog(ctx):
        await ctx.delay(limit * PERIOD)
        names = ", ".join(benches[index].__name__ for index in sorted(running))
        raise TimeoutError(f"the simulation exceeded {limit} cycles; still running: {names}")

    foreground = [tracked(index, bench) for index, bench in enumerate(benches)]
    testbenches = [watchdog, *background, *foreground]
    simulation = getattr(dut, "_simulation", None)
    if simulation is None or simulation.count < len(testbenches):
        dut._simulation = simulation = _Simulation(dut, len(testbenches))
    simulation.run(testbenches)


class _Simulation:
    """A simulator with a number of testbenches, which each run replaces."""

    def __init__(self, dut, count):
        self.count, self._testbenches = count, None
        m = Module()
        m.submodules.dut = dut
        m.d.sync += Signal(name="alive").eq(1)  # a clock domain, also for a combinational block
        self._simulator = Simulator(m, engine=Engine)
        self._simulator.add_clock(PERIOD)
        for index in range(count):
            self._simulator.add_testbench(self._testbench(index), background=True)

    def _testbench(self, index):
        async def run(ctx):
            if index < len(self._testbenches):
                await self._testbenches[index](BenchContext(ctx))
        return run

    def run(self, testbenches):
        """Run testbenches from the reset on."""
        if self._testbenches is not None:
            self._simulator.reset()
        self._testbenches = testbenches
        self._simulator.run()


def put(ctx, target, value):
    """``ctx.set``, but ValueError for a value that does not fit the target."""
    ctx.set(Value.cast(target), pack(target.shape(), value))


def plain(value):
    """A sample as int, or as a dict or list of its members if it has a layout."""
    if not isinstance(value, data.Const):
        return int(value)
    return unpack(value.shape(), value.as_bits())


def play(dut, script, *watched, tail=0):
    """Set ports by ``script``, one dict a cycle; returns the samples of each port ``watched``.

    Ports are given by name, ports of a stream with a dot. After the script, ``tail`` more cycles
    are sampled.
    """
    samples = [[] for _ in watched]

    def port(name):
        return functools.reduce(getattr, name.split("."), dut)

    async def bench(ctx):
        ports, before = [port(name) for name in watched], {}
        shapes, ports = [each.shape() for each in ports], [Value.cast(each) for each in ports]
        for cycle in [*script, *({} for _ in range(tail))]:
            for name, value in cycle.items():
                if name not in before or value != before[name]:
                    put(ctx, port(name), value)
                    before[name] = value
            _, _, *values = await ctx.tick().sample(*ports)
            for trace, shape, value in zip(samples, shapes, values, strict=True):
                trace.append(unpack(shape, value))

    simulate(dut, bench, limit=len(script) + tail + 2)
    return samples


async def ticks(ctx, count):
    """Wait ``count`` cycles; ``ctx.tick().repeat`` raises if another bench ends the run."""
    for _ in range(count):
        await ctx.tick()


async def pulse(ctx, port, value=1):
    """Set a port for one cycle."""
    put(ctx, port, value)
    await ctx.tick()
    ctx.set(port, [0, 0] if isinstance(value, list) else 0)


async def send(ctx, stream, payloads, *, idle=0, seed=0):
    """Send ``payloads`` over a stream; in each cycle before one, wait with probability ``idle``."""
    rng = random.Random(seed)
    raw = Value.cast(stream.payload)
    for payload in payloads:
        while rng.random() < idle:
            ctx.set(stream.valid, 0)
            ctx.set(raw, rng.getrandbits(max(1, len(raw))))
            await ctx.tick().sample(stream.ready)
        put(ctx, stream.payload, payload)
        ctx.set(stream.valid, 1)
        while not (await ctx.tick().sample(stream.ready))[-1]:
            pass
    ctx.set(stream.valid, 0)


async def receive(ctx, stream, count, *, stall=0, seed=0, until=None):
    """Receive ``count`` payloads, or up to the first one for which ``until`` is true.

    In each cycle the stream is not ready with probability ``stall``.
    """
    rng = random.Random(seed)
    raw, shape = Value.cast(stream.payload), stream.payload.shape()
    received = []
    while len(received) < count:
        ready = rng.random() >= stall
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, raw)
        if valid and ready:
            received.append(unpack(shape, payload))
            if until and until(received[-1]):
                break
    ctx.set(stream.ready, 0)
    return received


async def quiet(ctx, stream, cycles=20):
    """Raise ProtocolError if the stream has another valid word within ``cycles``."""
    ctx.set(stream.ready, 1)
    for cycle in range(cycles):
        _, _, valid = await ctx.tick().sample(stream.valid)
        if valid:
            raise ProtocolError(f"unexpected word on a stream that has ended, after {cycle} cycles")
    ctx.set(stream.ready, 0)


def checker(stream, name, reset=None):
    """A background bench: ProtocolError if ``stream`` drops or changes a valid word.

    A word may be dropped while the signal ``reset`` is high.
    """
    resets = () if reset is None else (reset,)

    async def check(ctx):
        pending = None
        ports = stream.valid, stream.ready, Value.cast(stream.payload), *resets
        while True:
            _, _, valid, ready, payload, *reset = await ctx.tick().sample(*ports)
            if pending is not None and not valid:
                raise ProtocolError(f"{name} must hold valid until ready, not drop it")
            if pending is not None and payload != pending:
                words = f"0x{pending:x} until ready, not change it to 0x{payload:x}"
                raise ProtocolError(f"{name} must hold its word {words}")
            pending = payload if valid and not ready and not any(reset) else None

    return check


_KEPT = 16  # triggers of a bench


class BenchContext:
    """The context of a testbench, with the methods and results of Amaranth's own.

    A wait for a clock edge reuses the trigger of the last wait with the same samples, and a signal
    is set only if its value changes: new triggers and sets take most of the time of a small design.

    Parameters
    ----------
    context : amaranth.sim.SimulatorContext
    """

    def __init__(self, context):
        self._context, self._engine, self._edges = context, context._engine, {}

    def __getattr__(self, name):
        return getattr(self._context, name)

    def set(self, target, value):
        """Set a signal."""
        if isinstance(target, data.View) and type(value) in (dict, list):
            target, value = target.as_value(), pack(target.shape(), value)
        if type(target) is not Signal or type(value) not in (int, bool):
            self._context.set(target, value)
        elif self._engine.get_value(target) != value:
            self._engine.set_value(target, value)
            self._engine.step_design()

    def get(self, target):
        """The value of a signal."""
        known = type(target) is Signal
        return self._engine.get_value(target) if known else self._context.get(target)

    def tick(self, domain="sync", **context):
        """A trigger for the edges of a clock."""
        if domain != "sync" or context:
            return self._context.tick(domain, **context)
        return _Tick(self, ())

    async def next_edge(self, sampled):
        """Wait for the next edge of ``sync``; returns what Amaranth's trigger returns."""
        key = tuple(map(id, sampled))
        edges, _ = self._edges.get(key, (None, None))
        if edges is not None:
            try:
                return await anext(edges)
            except BrokenTrigger:  # the bench has waited for something else meanwhile
                pass
        if len(self._edges) >= _KEPT:
            self._edges.clear()
        edges = aiter(self._context.tick().sample(*sampled))
        self._edges[key] = edges, sampled
        return await anext(edges)


class _Tick:
    """The part of Amaranth's ``TickTrigger`` that most benches use; all else is passed on."""

    def __init__(self, context, sampled):
        self._bench, self._sampled = context, sampled

    def __getattr__(self, name):
        return getattr(self._trigger(), name)

    def sample(self, *values):
        """Sample values at the edge, in addition to the values before them."""
        return _Tick(self._bench, (*self._sampled, *values))

    def __await__(self):
        return self._bench.next_edge(self._sampled).__await__()

    def __aiter__(self):
        return aiter(self._trigger())

    def _trigger(self):
        return self._bench._context.tick().sample(*self._sampled)
