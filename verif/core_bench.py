"""Runs a `Scenario` on a core in Amaranth's simulator, with back-pressure and protocol checks."""

from verif.amaranth_bench import checker, quiet, receive, send, simulate
from weft.sim.scenario import ResultWord

__all__ = ["check_results", "job_words", "run"]


async def job_words(ctx, results, *, stall=0.0, seed=0):
    """All result words of the next job."""
    words = await receive(
        ctx, results, 10_000, stall=stall, seed=seed, until=lambda word: word["last"]
    )
    return [ResultWord(**word) for word in words]


async def check_results(ctx, results, scenario, *, stall=0.0):
    """Check all results of a scenario, and that no more come."""
    for seed, scoreboard in enumerate(scenario.scoreboards):
        scoreboard.check(await job_words(ctx, results, stall=stall, seed=seed))
    await quiet(ctx, results)


def run(core, scenario, *benches, idle=0.0, stall=0.0, background=(), limit=20_000):
    """Send the words of a scenario to ``core`` and check its results, beside other ``benches``.

    ``idle`` and ``stall`` are the shares of cycles in which the bench sends no command word and
    takes no result. ``background`` benches do not end; the simulation has ``limit`` cycles at most.
    """
    async def source(ctx):
        await send(ctx, core.commands, scenario.words, idle=idle, seed=1)

    async def sink(ctx):
        await check_results(ctx, core.results, scenario, stall=stall)
        assert not ctx.get(core.activity.busy)

    checks = [checker(core.results, "results"), checker(core.commands, "commands")]
    simulate(core, source, sink, *benches, background=[*checks, *background], limit=limit)
