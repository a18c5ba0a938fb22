"""The issue slots: the values of every chunk at their slots, never two at once."""

import random

import pytest

from verif.amaranth_bench import plain, pulse, simulate
from weft.config import Config
from weft.hw.network_core.output.rescaler import IssueSlots
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.latencies import add_slot

NAMES = "layer", "total"


def config_of(mode, cycles, **fields):
    core = Config(
        depth=4, multiplier="plain", requantize=mode, scale_cycles=cycles, activation="none"
    )
    return NetworkCoreConfig(array=core, **fields)


def run(config, jobs, *, idle, cycles=300, seed=1):
    """Request chunks at random for each job ("add", "sums" or "plain"); its issues, by cycle."""
    dut, rng, traces = IssueSlots(config), random.Random(seed), []

    async def bench(ctx):
        for kind in jobs:
            trace = []
            ctx.set(dut.add, kind == "add")
            ctx.set(dut.sums, kind == "sums")
            await pulse(ctx, dut.start)
            drained = cycles - 4 * config.array.scale_cycles * (add_slot(config) // 2 + 2)
            for now in range(cycles):
                request = ctx.get(dut.ready) and now < drained and rng.random() >= idle
                ctx.set(dut.request, request)
                issue = plain((await ctx.tick().sample(dut.issue))[-1])
                trace.append([name for name in NAMES if issue[name]])
            traces.append(trace)

    simulate(dut, bench)
    return traces


@pytest.mark.parametrize("mode, cycles, multiplies", [
    ("tflite", 1, False), ("single", 1, False), ("tflite", 2, False), ("single", 8, False),
    ("single", 1, True), ("onnx", 1, False), ("onnx", 4, False),
])
@pytest.mark.parametrize("idle", [0, 0.9])
def test_each_value_has_its_slot(mode, cycles, multiplies, idle):
    config = config_of(mode, cycles, multiply_maps=multiplies)
    jobs = "add", "plain", "sums", "add"
    for kind, trace in zip(jobs, run(config, jobs, idle=idle), strict=True):
        assert all(len(issues) <= 1 for issues in trace)
        requests = [now for now, issues in enumerate(trace) if issues == ["layer"]]
        assert requests
        gaps = {b - a for a, b in zip(requests, requests[1:], strict=False)}
        interval = {"plain": 1, "add": 2, "sums": 4}[kind] * cycles
        assert gaps == {interval} if idle == 0 else min(gaps) >= interval
        totals = [now for now, issues in enumerate(trace) if issues == ["total"]]
        later = add_slot(config) * cycles
        assert totals == [now + later for now in requests if kind == "add"]


@pytest.mark.parametrize("add", [0, 1])
def test_a_job_starts_without_waiting_for_the_period_before(add):
    """The last value of a chunk may leave before its period of two slots ends."""
    config = config_of("tflite", 32)
    dut = IssueSlots(config)

    async def bench(ctx):
        ctx.set(dut.add, 1)
        await pulse(ctx, dut.request)
        for _ in range(32 * add_slot(config) + 2):
            await ctx.tick()
        assert not ctx.get(dut.ready)
        await pulse(ctx, dut.start)
        ctx.set(dut.add, add)
        assert ctx.get(dut.ready)
        for _ in range(500):
            assert ctx.get(dut.issue.as_value()) == 0
            await ctx.tick()

    simulate(dut, bench)
