"""The arbiters: every read and write passes once, in the order of the priorities."""

import random
from dataclasses import replace

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from network_cores import small_network_core

from verif.amaranth_bench import plain, play, put, send, simulate
from weft.hw.network_core.memory.banked_memory import BankedMemory, ReadArbiter, WriteArbiter
from weft.network_core.latencies import SIDE_READ

CHIP = small_network_core(2, 2, 2, read_vectors=2)


def place(number):
    return {"bank": number % CHIP.banks, "word": number // CHIP.banks}


def reads_of(clients, *, idle, stall, count=40):
    """Random reads of all clients: the data and the cycle of each, by client; their latency.

    The vectors of a read tell its address.
    """
    dut = ReadArbiter(CHIP, clients)
    rng, latency = random.Random(clients), SIDE_READ
    numbers = [[rng.randrange(16 * CHIP.banks) for _ in range(count)] for _ in range(clients)]
    accepted, found = [[] for _ in range(clients)], [[] for _ in range(clients)]

    def source(client):
        async def bench(ctx):
            stream = dut.reads[client].request
            places = [place(number) for number in numbers[client]]
            await send(ctx, stream, places, idle=idle, seed=client)
        return bench

    async def memory(ctx):
        pipeline, now, arrives = [None] * latency, 0, False
        request = dut.memory.request
        while any(len(reads) < count for reads in found):
            ctx.set(dut.memory.request.ready, rng.random() >= stall)
            number = pipeline.pop(0)
            ctx.set(dut.memory.data_valid, number is not None)
            put(ctx, dut.memory.data, [number or 0, 7])
            streams = [client.request for client in dut.reads]
            values = (await ctx.tick().sample(
                request.valid, request.ready, request.payload, dut.reads[0].data,
                *(client.data_valid for client in dut.reads),
                *(s.valid & s.ready for s in streams),
            ))[2:]
            valid, ready, payload, data = values[:4]
            address = plain(payload)
            pipeline.append(
                address["bank"] + CHIP.banks * address["word"] if valid and ready else None
            )
            for client in range(clients):
                if values[4 + client]:
                    found[client].append((plain(data)[0], now))
                if values[4 + clients + client]:
                    accepted[client].append(now)
            assert sum(values[4 : 4 + clients]) == arrives  # a cycle later
            arrives = number is not None
            taken = sum(map(len, accepted)) - sum(map(len, found))
            assert taken <= dut.IN_FLIGHT
            now += 1

    simulate(dut, memory, *map(source, range(clients)))
    for client in range(clients):
        assert [number for number, _ in found[client]] == numbers[client]
    return accepted, found, dut.LATENCY


@pytest.mark.parametrize("clients", [1, 2, 4])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.4), (0.5, 0.5)])
def test_each_client_gets_its_vectors_in_order(clients, idle, stall):
    accepted, found, latency = reads_of(clients, idle=idle, stall=stall)
    for asked, got in zip(accepted, found, strict=True):
        latencies = {now - at for at, (_, now) in zip(asked, got, strict=True)}
        assert min(latencies) == latency
        assert stall or latencies == {latency}


def test_the_first_client_goes_first_and_no_cycle_is_lost():
    accepted, *_ = reads_of(3, idle=0, stall=0, count=10)
    first = accepted[0][0]
    assert sum(accepted, []) == [*range(first, first + 30)]


def test_reads_of_a_memory():
    """With the memory: a client reads the vectors that were written."""
    m = Module()
    m.submodules.memory = memory = BankedMemory(CHIP)
    m.submodules.arbiter = arbiter = ReadArbiter(CHIP, 1)
    wiring.connect(m, arbiter.memory, memory.reads)
    m.d.comb += memory.read_bank.eq(arbiter.read_bank)
    client = arbiter.reads[0]
    found = []

    async def bench(ctx):
        for number in range(8):
            put(ctx, memory.write, {
                "valid": 1, "address": place(number), "data": 100 + number, "enable": 3,
            })
            await ctx.tick()
        put(ctx, memory.write.valid, 0)
        await send(ctx, client.request, [place(number) for number in (0, 5, 3, 6)])

    async def sink(ctx):
        while len(found) < 4:
            _, _, valid, data = await ctx.tick().sample(client.data_valid, client.data)
            if valid:
                found.append(plain(data))

    simulate(m, bench, sink)
    assert found == [[100, 101], [105, 106], [103, 104], [106, 107]]


def test_both_writes_of_the_map_store_come_first():
    """The second one goes on beside the first one; no other write goes with it."""
    rng = random.Random(2)
    config = replace(CHIP, array=replace(CHIP.array, rows=2, hop=2, lanes=2), two_rows=True)
    dut, script, passed = WriteArbiter(config), [], []
    for _ in range(40):
        writes = [
            {"valid": rng.randrange(2), "address": place(rng.randrange(48)),
             "data": rng.getrandbits(16), "enable": rng.getrandbits(2)}
            for _ in range(2)
        ]
        script.append({
            "store": writes[0], "second": writes[1], "log.valid": 1, "host.valid": 1,
        })
        passed.append(writes)
    outputs = "write", "second_write", "log.ready", "host.ready"
    first, second, log, host = play(dut, script, *outputs)
    for now, (write, other) in enumerate(passed[: -WriteArbiter.LATENCY]):
        assert log[now] == (not (write["valid"] or other["valid"]))
        assert not host[now]
        later = now + WriteArbiter.LATENCY
        assert second[later] == other
        if write["valid"]:
            assert first[later] == write
        else:
            assert first[later]["valid"] == log[now]


def test_writes_of_the_map_store_come_first():
    rng = random.Random(1)
    dut, script, passed, ready = WriteArbiter(CHIP), [], [], []
    read_waited = 0
    for _ in range(60):
        writes = [
            {"address": place(rng.randrange(48)), "data": rng.getrandbits(16),
             "enable": rng.getrandbits(2)}
            for _ in range(3)
        ]
        store, log, host, read_waits = (rng.randrange(2) for _ in range(4))
        script.append({
            "read_waits": read_waits, "store": {"valid": store, **writes[0]},
            "log.payload": writes[1], "log.valid": log,
            "host.payload": writes[2], "host.valid": host,
        })
        log_ready = not store
        host_ready = log_ready and not (log or read_waited)
        chosen = 1 if log and log_ready else 2 if host and host_ready else 0
        valid = store or log and log_ready or host and host_ready
        passed.append({"valid": valid, **writes[chosen]})
        ready.append((log_ready, host_ready))
        read_waited = read_waits
    writes, log, host = play(dut, script, "write", "log.ready", "host.ready")
    assert list(zip(log, host, strict=True)) == ready
    assert writes[WriteArbiter.LATENCY :] == passed[: -WriteArbiter.LATENCY]
