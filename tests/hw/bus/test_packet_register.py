"""Packets: the stream's promise holds through soft resets, wherever they fall."""

import random

import pytest

from weft.hw.bus.packet_register import PacketRegister
from weft.sim.amaranth_bench import checker, quiet, receive, send, simulate, ticks


def words_of(seed, jobs, size=4):
    """The words of jobs, some of them aborted or refused: a list for each."""
    rng, found = random.Random(seed), []
    for tag in range(jobs):
        status = rng.choice([0, 0, 1, 2])
        length = rng.choice([1, 1, 2, 7])
        found.append([
            {"data": rng.getrandbits(8 * size), "last": int(n == length - 1),
             "status": status * (n == length - 1), "tag": tag}
            for n in range(length)
        ])
    return found


def masked(word):
    return word | ({"data": 0} if word["status"] else {})


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.6, 0), (0, 0.6), (0.5, 0.5)])
def test_packets_are_the_results(idle, stall):
    dut, jobs = PacketRegister(bytes_out=4), words_of(1, 60)
    words = [word for job in jobs for word in job]
    ended = []

    async def give(ctx):
        await send(ctx, dut.results, words, idle=idle, seed=1)

    async def take(ctx):
        found = await receive(ctx, dut.packets, len(words), stall=stall, seed=2)
        assert found == [masked(word) for word in words]
        await quiet(ctx, dut.packets)

    async def watch(ctx):
        while True:
            _, _, one = await ctx.tick().sample(dut.ended)
            if one.valid:
                ended.append((one.tag, one.status))

    simulate(dut, give, take, background=[watch, checker(dut.packets, "packets")])
    assert ended == [(job[-1]["tag"], job[-1]["status"]) for job in jobs]


def test_rate():
    dut, words = PacketRegister(bytes_out=4), [word for job in words_of(2, 30) for word in job]
    came = []

    async def give(ctx):
        await send(ctx, dut.results, words)

    async def take(ctx):
        ctx.set(dut.packets.ready, 1)
        for cycle in range(len(words) + 5):
            _, _, valid = await ctx.tick().sample(dut.packets.valid)
            came.extend([cycle] * valid)

    simulate(dut, give, take)
    assert came == list(range(came[0], came[0] + len(words)))


@pytest.mark.parametrize("stall", [0, 0.5, 0.95])
@pytest.mark.parametrize("seed", range(6))
def test_a_soft_reset_ends_the_packet_that_is_open(seed, stall):
    dut, rng = PacketRegister(bytes_out=4), random.Random(seed)
    print("seed", seed)
    taken, ended, given = [], [], []

    async def give(ctx):
        for round_ in range(12):
            words = [w for job in words_of(100 * seed + round_, 6) for w in job]
            words = [word | {"tag": word["tag"] + 100 * round_} for word in words]
            given.append(words)
            await send(ctx, dut.results, words[: rng.randrange(len(words))], idle=0.2, seed=seed)
            ctx.set(dut.reset, 1)
            await ticks(ctx, rng.choice([1, 2, 16]))
            assert not ctx.get(dut.results.ready)
            ctx.set(dut.reset, 0)
            given[-1].append(len(ended))
        await ticks(ctx, 200)

    async def take(ctx):
        takes = random.Random(seed + 50)
        while True:
            ctx.set(dut.packets.ready, ready := int(takes.random() >= stall))
            _, _, valid, p, one = await ctx.tick().sample(
                dut.packets.valid, dut.packets.payload, dut.ended
            )
            if one.valid:
                ended.append((one.tag, one.status))
            if valid and ready:
                taken.append({name: getattr(p, name) for name in ("data", "last", "status", "tag")})

    simulate(dut, give, background=[take, checker(dut.packets, "packets")], limit=20_000)
    # Packets, each of one job: all of it, or a part and a word that says so.
    packets, packet = [], []
    for word in taken:
        packet.append(word)
        if word["last"]:
            packets.append(packet)
            packet = []
    assert not packet, "the last packet must have ended"
    whole = {}
    for words in given:
        for word in words[:-1]:
            whole.setdefault(word["tag"], []).append(masked(word))
    cut = 0
    for packet in packets:
        job = whole[packet[0]["tag"]]
        assert {word["tag"] for word in packet} == {packet[0]["tag"]}
        if packet != job:
            cut += 1
            assert packet[:-1] == job[: len(packet) - 1]
            assert (packet[-1]["data"], packet[-1]["status"]) == (0, 1)
    assert cut or stall > 0.9
    assert set(ended) <= {(job[-1]["tag"], job[-1]["status"]) for job in whole.values()}
