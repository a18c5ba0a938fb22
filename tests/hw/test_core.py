"""Whole cores: the cocotb benches on many Configs, in both simulators, against golden."""

import pytest
from amaranth.hdl import ResetInserter, Signal
from tiers import tiers

from verif.amaranth_bench import pulse, send, simulate
from verif.core_bench import check_results
from weft.config import Config
from weft.hw.core import Core
from weft.sim.build import folder
from weft.sim.runner import run
from weft.sim.scenario import A, B, Scenario

SMALL = {"a_words": 256, "b_words": 256}
FLOAT = {"dtype": "bf16", **SMALL}
# The Config, and the number of its benches; some benches run fewer cases on Icarus.
ICARUS = {
    "2x3x2-folded": (Config(
        rows=2, cols=3, depth=2, drain="folded", multiplier="fip", requantize="onnx",
        b_zero_point="column", lanes=2, bytes_out=8, jobs=2, a_words=64, b_words=64,
    ), 39),
    "2x1-bf16": (Config(
        rows=2, cols=1, hop=1, lanes=2, flush_subnormals=True, c_words=64, bytes_out=4, **FLOAT
    ), 53),
    "5x2x3-narrow": (Config(
        rows=5, cols=2, depth=3, hop=3, requantize="none", bytes_in=64, bytes_out=2, a_words=32,
        b_words=128,
    ), 30),
}
VERILATOR = {
    "1x1x1": (Config(rows=1, cols=1, depth=1, lanes=1, bytes_in=1, bytes_out=1, **SMALL), 46),
    "3x6x2-folded": (Config(
        rows=3, cols=6, depth=2, hop=2, drain="folded", lanes=4, requantize="single", **SMALL
    ), 46),
    "4x4x4-fip": (Config(
        rows=4, cols=4, depth=4, multiplier="fip", b_zero_point="column", **SMALL
    ), 46),
    "1x8x4": (Config(
        rows=1, cols=8, depth=4, hop=2, lanes=4, bytes_in=8, bytes_out=32, **SMALL
    ), 46),
    "3x2-bf16": (Config(
        rows=3, cols=2, hop=1, flush_subnormals=True, lanes=1, c_words=64, bytes_in=4, bytes_out=2,
        **FLOAT,
    ), 92),
}


def passes(simulator, case):
    config, count = case
    outcome = run(config, simulator, build_dir=folder() / "benches")
    assert (outcome.tests, outcome.failures) == (count, 0)
    assert outcome.cycles > 10_000


@pytest.mark.parametrize("case", tiers(ICARUS, long=ICARUS))
def test_benches_pass_on_icarus(case):
    passes("icarus", case)


@pytest.mark.long
def test_benches_of_bf16_pass_on_icarus():
    config, _ = ICARUS["2x1-bf16"]
    names = "shapes", "kinds", "bf16_chains", "resident_c", "page_overlaps"
    outcome = run(config, "icarus", build_dir=folder() / "benches", testcase=names)
    assert (outcome.tests, outcome.failures) == (8, 0)


# Icarus simulates a folded drain, and the covering Configs have the other shapes.
@pytest.mark.parametrize("case", tiers(
    VERILATOR, long={"1x1x1", "3x6x2-folded", "1x8x4", "3x2-bf16"}
))
def test_benches_pass_on_verilator(case):
    passes("verilator", case)


@pytest.mark.parametrize("drain", ["folded", "overlapped"])
def test_a_reset_of_one_cycle_leaves_no_products(drain):
    # The MAC cells of an ECP5 have no reset in the pipelines of their products.
    config = Config(
        rows=1, cols=2, depth=2, target="ecp5", drain=drain, requantize="none", activation="none",
        lanes=2, a_words=32, b_words=32,
    )
    core, reset = Core(config), Signal()
    before, after = Scenario(config), Scenario(config)
    operands = before.random(1, 64), before.random(2, 64)
    placed = [before.place(side, matrix) for side, matrix in zip((A, B), operands, strict=True)]
    before.load(*placed)
    before.job(*placed)
    after.multiply(after.random(1, 2), after.random(2, 2))

    async def bench(ctx):
        await send(ctx, core.commands, before.words)
        while not ctx.get(core.activity.active):
            await ctx.tick()
        await ctx.tick().repeat(8)
        await pulse(ctx, reset)
        await send(ctx, core.commands, after.words)
        await check_results(ctx, core.results, after)

    simulate(ResetInserter(reset)(core), bench)
