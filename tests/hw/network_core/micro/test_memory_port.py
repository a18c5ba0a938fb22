"""The port of the memory: who is served, and what is read and written."""

import random

import pytest

from verif.amaranth_bench import simulate
from weft.hw.network_core.micro.loads import SharedPort

WORDS = 16
ARRAY = "store", "added", "step"
ENGINE = "load", "engine_read", "engine_write"
HOST = "host_write", "host_read"


def served(requests, quiet):
    """Whom the port serves: the array, the host if the engine was quiet, or the engine."""
    order = [*ARRAY, *(HOST if quiet else ()), *ENGINE]
    return next((name for name in order if name in requests), None)


def choose(rng, busy):
    """Random requests: the host and the engine have one each at most.

    The engine writes while no tile is in progress.
    """
    found = {name for name in ARRAY if rng.random() < busy}
    for client in (HOST, ENGINE):
        if rng.random() < busy:
            found.add(rng.choice(client))
    if "engine_write" in found:
        found -= set(ARRAY)
    return found


@pytest.mark.parametrize("busy", [0.2, 0.45])
def test_requests_are_served_by_priority(busy):
    rng, dut = random.Random(1), SharedPort(words=WORDS, target="ice40up")
    memory, expected, counts = [0] * WORDS, None, {}

    async def bench(ctx):
        nonlocal expected
        quiet = False
        for _ in range(800):
            requests = choose(rng, busy)
            addresses = {}
            for name in (*ARRAY, *HOST, "engine_write"):
                request = getattr(dut, name)
                addresses[name] = rng.randrange(WORDS)
                ctx.set(request.valid, name in requests)
                ctx.set(request.address, addresses[name])
            data = {}
            for name in ("store", "host_write", "engine_write"):
                data[name] = rng.getrandbits(4), rng.getrandbits(32)
                ctx.set(getattr(dut, name).enable, data[name][0])
                ctx.set(getattr(dut, name).data, data[name][1])
            for name in ("load", "engine_read"):
                ctx.set(getattr(dut, name), name in requests)
            names = ["store", "added", *HOST, *ENGINE]
            *ready, free, read_data = (await ctx.tick().sample(
                *(getattr(dut, f"{name}_ready") for name in names), dut.step_free, dut.read_data
            ))[2:]
            assert free == (not requests & {"store", "added"})
            if expected is not None:
                assert read_data == expected
            who = served(requests, quiet)
            assert [name for name, value in zip(names, ready, strict=True) if value] == (
                [who] if who not in ("step", None) else []
            )
            quiet = not requests & set(ENGINE)
            counts[who] = counts.get(who, 0) + 1
            address = addresses.get(who, addresses["engine_write"])
            expected = None
            if who in data:
                enable, value = data[who]
                mask = sum(0xFF << 8 * n for n in range(4) if enable >> n & 1)
                memory[address] = memory[address] & ~mask | value & mask
            elif who:
                expected = memory[address]

    simulate(dut, bench)
    assert min(counts[name] for name in (*ARRAY, *HOST, *ENGINE)) > 5
