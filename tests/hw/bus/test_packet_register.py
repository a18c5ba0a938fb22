"""Tests of the packet register: packets stay legal AXI4-Stream across soft resets."""

import random

import pytest
from streams import check_transfer, valid_cycles
from tiers import quick

from verif.amaranth_bench import checker, send, simulate, ticks
from weft.hw.bus.bus_wrapper import PacketRegister


def words_of(seed, jobs, size=4):
    """A list of words for each job; some jobs are aborted or rejected."""
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
    done = []

    async def watch(ctx):
        while True:
            _, _, job_done = await ctx.tick().sample(dut.job_done)
            if job_done.valid:
                done.append((job_done.tag, job_done.status))

    check_transfer(
        dut, dut.results, dut.packets, words, [masked(word) for word in words], idle=idle,
        stall=stall, background=[watch],
    )
    assert done == [(job[-1]["tag"], job[-1]["status"]) for job in jobs]


def test_rate():
    dut, words = PacketRegister(bytes_out=4), [word for job in words_of(2, 30) for word in job]
    cycles = valid_cycles(dut, dut.results, dut.packets, words, cycles=len(words) + 5)
    assert cycles == list(range(cycles[0], cycles[0] + len(words)))


@pytest.mark.parametrize("stall", [0, 0.5, 0.95])
@pytest.mark.parametrize("seed", quick(2, [*range(6)]))
def test_soft_reset_ends_the_open_packet(seed, stall):
    dut, rng = PacketRegister(bytes_out=4), random.Random(seed)
    print("seed", seed)
    received, done, sent = [], [], []

    async def source(ctx):
        for round_ in range(12):
            words = [w for job in words_of(100 * seed + round_, 6) for w in job]
            words = [word | {"tag": word["tag"] + 100 * round_} for word in words]
            sent.append(words)
            await send(ctx, dut.results, words[: rng.randrange(len(words))], idle=0.2, seed=seed)
            ctx.set(dut.flush, 1)
            await ticks(ctx, rng.choice([1, 2, 16]))
            assert not ctx.get(dut.results.ready)
            ctx.set(dut.flush, 0)
            sent[-1].append(len(done))
        await ticks(ctx, 200)

    async def sink(ctx):
        ready_rng = random.Random(seed + 50)
        while True:
            ctx.set(dut.packets.ready, ready := int(ready_rng.random() >= stall))
            _, _, valid, p, job_done = await ctx.tick().sample(
                dut.packets.valid, dut.packets.payload, dut.job_done
            )
            if job_done.valid:
                done.append((job_done.tag, job_done.status))
            if valid and ready:
                received.append(
                    {name: getattr(p, name) for name in ("data", "last", "status", "tag")}
                )

    simulate(dut, source, background=[sink, checker(dut.packets, "packets")], limit=20_000)
    # A packet is a whole job, or a part of a job and a word with the status of an abort.
    packets, packet = [], []
    for word in received:
        packet.append(word)
        if word["last"]:
            packets.append(packet)
            packet = []
    assert not packet, "the last packet must have ended"
    whole = {}
    for words in sent:
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
    assert set(done) <= {(job[-1]["tag"], job[-1]["status"]) for job in whole.values()}
