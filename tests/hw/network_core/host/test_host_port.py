"""The host port: WRITE, START, READ, READ_MEMORY and ABORT frames on a modelled core."""

import random

import numpy as np
import pytest
from network_cores import small_network_core

from verif.amaranth_bench import send, simulate, ticks
from weft.frames import FrameType
from weft.golden.network_core import write_pixels
from weft.hw.network_core.host.host_port import HostPort
from weft.hw.serial.frame_receiver import Nak, RequestOp
from weft.network_core.descriptors import NetworkState, join, split
from weft.network_core.register_map import REGISTERS, describe

HASH = REGISTERS.index("hash")
CHIP = small_network_core(2, 4, 4, read_vectors=2)
STATUS = {"state": 0, "error": 0, "job": 0, "cycles": 0, "result": {"bank": 0, "word": 0},
          "result_bytes": 0}


class ModelledCore:
    """The memory and the lists of a core; a list ends ``cycles`` cycles after its start.

    Attributes
    ----------
    memory : array of bytes, one row a vector
    begun : list of (list, log), numbers of vectors
    outcome : dict
        Fields of the status of a list that ends.
    """

    def __init__(self, config, *, stall=0.5, cycles=20):
        self.config, self.stall, self.cycles = config, stall, cycles
        self.port = HostPort(config)
        self.memory = np.random.default_rng(3).integers(
            0, 256, (config.vectors, config.array.depth), np.uint8
        )
        self.begun, self.aborts, self.frames = [], 0, []
        self.outcome = STATUS | {"state": NetworkState.DONE, "job": 3, "cycles": 77}
        self.free = True  # whether the memory can be written
        self.paused = False  # whether the link takes no bytes of payloads

    def number(self, address):
        return address.word * self.config.banks + address.bank

    async def run(self, ctx):
        core, rng, reads, left = self.port.core, random.Random(5), [], 0
        while True:
            ready = rng.random() >= self.stall, rng.random() >= self.stall
            ctx.set(core.writes.ready, ready[0] and self.free)
            ctx.set(core.reads.request.ready, ready[1])
            _, _, *sample = await ctx.tick().sample(
                core.writes.valid, core.writes.payload, core.reads.request.valid,
                core.reads.request.payload,
                core.begin, core.abort,
            )
            write_valid, write, read_valid, read, begin, abort = sample
            if write_valid and ready[0] and self.free:
                data = write.data.to_bytes(self.config.array.depth, "little")
                assert write.enable == (1 << self.config.array.depth) - 1
                self.memory[self.number(write.address)] = list(data)
            reads.append(self.number(read) if read_valid and ready[1] else None)
            number = reads.pop(0) if len(reads) > 3 else None
            ctx.set(core.reads.data_valid, number is not None)
            if number is not None:
                vectors = [self.memory[n % self.config.vectors] for n in (number, number + 1)]
                ctx.set(core.reads.data, [int.from_bytes(v.tobytes(), "little") for v in vectors])
            ctx.set(core.finished, left == 1)
            if left == 1:
                ctx.set(core.status, self.outcome)
            left -= left > 0
            if begin.valid:
                self.begun.append((self.number(begin.list), self.number(begin.log)))
                ctx.set(core.status, STATUS | {"state": NetworkState.RUNNING})
                left = self.cycles
            if abort:
                self.aborts += 1
                left = 0
                ctx.set(core.status, STATUS | {"state": NetworkState.ABORTED, "error": 5})

    async def listen(self, ctx):
        """Collect the frames to the host: type, sequence number, payload."""
        frames, rng = self.port.frames, random.Random(6)
        while True:
            ctx.set(frames.frame.ready, 1)
            _, _, valid, header = await ctx.tick().sample(frames.frame.valid, frames.frame.payload)
            if not valid:
                continue
            ctx.set(frames.frame.ready, 0)
            payload = b""
            while len(payload) < header.length:
                ready = rng.random() >= self.stall and not self.paused
                ctx.set(frames.payload.ready, ready)
                _, _, valid, byte = await ctx.tick().sample(
                    frames.payload.valid, frames.payload.payload
                )
                payload += bytes([byte] * (valid and ready))
            ctx.set(frames.payload.ready, 0)
            self.frames.append((header.type, header.sequence, payload))

    async def command(self, ctx, kind, sequence, payload):
        """Give the host port an accepted frame; return when its bytes were taken."""
        frames = self.port.frames
        ctx.set(frames.pending, 1)
        header = bytes([kind, sequence]) + len(payload).to_bytes(4, "little")
        await send(ctx, frames.commands, header + payload, idle=0.2, seed=sequence)
        ctx.set(frames.pending, 0)

    async def request(self, ctx, op, sequence, operands=b"", nak=Nak.CRC):
        payload = {"op": op.value, "nak": nak.value, "sequence": sequence,
                   "operands": int.from_bytes(operands.rjust(8, b"\0"), "little")}
        await send(ctx, self.port.frames.request, [payload])

    async def answer(self, ctx):
        while not self.frames:
            await ctx.tick()
        return self.frames.pop(0)

    def simulate(self, bench, limit=20_000):
        simulate(self.port, bench, background=[self.run, self.listen], limit=limit)
        assert self.frames == []


def write(config, number, data, *, run=0, pitch=0, pixels=0, row_step=0):
    """The payload of a WRITE frame; ``number`` and ``row_step`` count vectors."""
    fields = split(number, config.banks).to_bytes(4, "little") + bytes([run, pitch])
    step = split(row_step, config.banks).to_bytes(4, "little")
    return fields + pixels.to_bytes(2, "little") + step + data


WRITES = {
    "vectors": (CHIP, 5, 22, {}),
    "many vectors": (small_network_core(2, 4, 4, words=128, read_vectors=2), 9, 520, {}),
    "pixels": (CHIP, 3, 18, dict(run=3, pitch=2, pixels=100)),
    "long pixels": (CHIP, 1, 21, dict(run=7, pitch=3, pixels=9)),
    "rows": (CHIP, 4, 16, dict(run=2, pitch=1, pixels=3, row_step=5)),
    "rows of one pixel, backwards": (CHIP, 30, 20, dict(run=5, pitch=9, pixels=1, row_step=-4)),
    "one row in the array": (
        small_network_core(1, 4, 1, read_vectors=2), 2, 9,
        dict(run=2, pitch=3, pixels=2, row_step=4)
    ),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes(case):
    config, number, size, layout = WRITES[case]
    core, data = ModelledCore(config), random.Random(case).randbytes(size)
    expected = core.memory.copy()
    write_pixels(expected, number, data, **layout)

    async def bench(ctx):
        await core.command(ctx, FrameType.WRITE, 1, write(config, number, data, **layout))
        await core.command(ctx, FrameType.WRITE, 2, b"")
        await core.command(ctx, FrameType.WRITE, 3, write(config, 0, b""))
        await core.command(ctx, FrameType.WRITE, 4, write(config, config.vectors, data))
        await core.request(ctx, RequestOp.READ, 9, bytes([HASH, 0, 1, 0]))
        assert await core.answer(ctx) == (
            FrameType.REGISTERS, 9, config.hash.to_bytes(4, "little")
        )

    core.simulate(bench)
    assert core.memory.tolist() == expected.tolist()


def test_reads_the_memory_after_the_writes_before():
    core = ModelledCore(CHIP)
    data = bytes(range(100, 111))

    async def bench(ctx):
        await core.command(ctx, FrameType.WRITE, 1, write(CHIP, 7, data))
        for sequence, (number, size) in enumerate([(6, 20), (7, 1), (0, 0), (0, 8), (47, 6)]):
            operands = split(number, 3).to_bytes(4, "little") + size.to_bytes(4, "little")
            await core.request(ctx, RequestOp.READ_MEMORY, sequence, operands)
            expected = core.memory.tobytes()[4 * number :][:size].ljust(size, b"\0")
            if number == 6:
                expected = core.memory.tobytes()[24:28] + data + bytes(1)
                expected += core.memory.tobytes()[40:44]
            assert await core.answer(ctx) == (FrameType.DATA, sequence, expected)

    core.simulate(bench)


def test_reads_registers():
    core, constants = ModelledCore(CHIP), describe(CHIP)

    async def bench(ctx):
        await core.request(ctx, RequestOp.READ, 1, bytes([0, 0, len(constants), 0]))
        words = b"".join(word.to_bytes(4, "little") for word in constants)
        assert await core.answer(ctx) == (FrameType.REGISTERS, 1, words)
        ctx.set(core.port.core.status, {
            "state": 4, "error": 3, "job": 0x1234, "cycles": 0x89ABCDEF,
            "result": {"bank": 2, "word": 9}, "result_bytes": 345,
        })
        await core.request(ctx, RequestOp.READ, 2, bytes([len(constants), 0, 6, 0]))
        _, _, data = await core.answer(ctx)
        state = np.frombuffer(data, "<u4").tolist()
        assert state == [0x1234_0304, 0x89ABCDEF, 9 << 8 | 2, 345, 0, 0]
        assert REGISTERS.index("net_status") == len(constants) == len(REGISTERS) - 4
        assert join(state[2], CHIP.banks) == 29
        await core.request(ctx, RequestOp.READ, 3, bytes(4))
        assert await core.answer(ctx) == (FrameType.REGISTERS, 3, b"")

    core.simulate(bench)


def start(list_number, log_number):
    return b"".join(split(n, CHIP.banks).to_bytes(4, "little") for n in (list_number, log_number))


def test_a_list_ends_with_done_and_its_result():
    core = ModelledCore(CHIP)
    core.outcome |= {"result": {"bank": 1, "word": 4}, "result_bytes": 10}
    result = core.memory.tobytes()[4 * 13 :][:10]

    async def bench(ctx):
        for sequence in (7, 8):
            await core.command(ctx, FrameType.START, sequence, start(5, 40))
            done = bytes([NetworkState.DONE, 0, 3, 0, 77, 0, 0, 0])
            assert await core.answer(ctx) == (FrameType.DONE, sequence, done + result)
        core.outcome |= {"state": NetworkState.ERROR, "error": 2}
        await core.command(ctx, FrameType.START, 9, start(5, 40))
        done = bytes([NetworkState.ERROR, 2, 3, 0, 77, 0, 0, 0])
        assert await core.answer(ctx) == (FrameType.DONE, 9, done)

    core.simulate(bench)
    assert core.begun == [(5, 40)] * 3


def test_start_while_a_list_runs_is_refused():
    core = ModelledCore(CHIP, cycles=600)

    async def bench(ctx):
        await core.command(ctx, FrameType.START, 7, start(5, 40))
        await core.command(ctx, FrameType.WRITE, 8, write(CHIP, 0, bytes(4)))
        await core.command(ctx, FrameType.START, 9, start(6, 40))
        assert await core.answer(ctx) == (FrameType.ERROR, 9, b"busy")
        await core.request(ctx, RequestOp.READ, 1, bytes([len(describe(CHIP)), 0, 1, 0]))
        assert (await core.answer(ctx))[2] == bytes([NetworkState.RUNNING, 0, 0, 0])
        assert (await core.answer(ctx))[:2] == (FrameType.DONE, 7)

    core.simulate(bench)
    assert core.begun == [(5, 40)] and core.memory[0].tolist() == [0] * 4


def test_a_list_starts_when_done_of_the_list_before_was_sent():
    core = ModelledCore(CHIP, cycles=200)
    address, size = bytes(4), (9).to_bytes(4, "little")

    async def bench(ctx):
        await core.command(ctx, FrameType.START, 7, start(7, 40))
        core.paused = True
        await core.request(ctx, RequestOp.READ_MEMORY, 1, address + size)
        await core.command(ctx, FrameType.START, 8, start(8, 40))
        await ticks(ctx, 300)
        assert core.begun == [(7, 40)] and core.frames == []  # the frame to the host is not sent
        core.paused = False
        assert (await core.answer(ctx))[:2] == (FrameType.DATA, 1)
        for sequence in (7, 8):
            done = bytes([NetworkState.DONE, 0, 3, 0, 77, 0, 0, 0])
            assert await core.answer(ctx) == (FrameType.DONE, sequence, done)

    core.simulate(bench)
    assert core.begun == [(7, 40), (8, 40)]


def test_a_request_waits_for_the_frames_in_the_link():
    core = ModelledCore(CHIP)

    async def bench(ctx):
        ctx.set(core.port.frames.pending, 1)
        ctx.set(core.port.frames.request.payload.op, RequestOp.READ)
        ctx.set(core.port.frames.request.valid, 1)
        await ticks(ctx, 50)
        assert core.frames == [] and not ctx.get(core.port.frames.request.ready)
        ctx.set(core.port.frames.pending, 0)
        await ctx.tick().until(core.port.frames.request.ready)
        ctx.set(core.port.frames.request.valid, 0)
        assert await core.answer(ctx) == (FrameType.REGISTERS, 0, b"")

    core.simulate(bench)


def test_an_abort_ends_a_list_without_done():
    core = ModelledCore(CHIP, cycles=400)

    async def bench(ctx):
        await core.command(ctx, FrameType.START, 7, start(5, 40))
        await ticks(ctx, 50)
        await core.request(ctx, RequestOp.ABORT, 1)
        assert await core.answer(ctx) == (FrameType.ABORTED, 1, b"")
        await core.request(ctx, RequestOp.READ, 2, bytes([len(describe(CHIP)), 0, 1, 0]))
        assert (await core.answer(ctx))[2] == bytes([NetworkState.ABORTED, 5, 0, 0])
        await ticks(ctx, 500)
        assert core.frames == []
        await core.command(ctx, FrameType.START, 8, start(6, 40))
        assert (await core.answer(ctx))[:2] == (FrameType.DONE, 8)

    core.simulate(bench)
    assert core.aborts == 1 and core.begun == [(5, 40), (6, 40)]


def test_an_abort_cancels_a_start_that_waits():
    core = ModelledCore(CHIP)

    async def frames(ctx):
        core.free = False
        await core.command(ctx, FrameType.WRITE, 6, write(CHIP, 0, bytes(4)))
        await core.command(ctx, FrameType.START, 7, start(5, 40))

    async def requests(ctx):
        await ticks(ctx, 100)
        await core.request(ctx, RequestOp.NAK, 3, nak=Nak.SIZE)  # this needs no order
        await core.request(ctx, RequestOp.ABORT, 4)

    async def bench(ctx):
        assert await core.answer(ctx) == (FrameType.ERROR, 3, b"size")
        await ticks(ctx, 200)
        assert core.aborts == 1 and core.frames == []
        core.free = True
        assert await core.answer(ctx) == (FrameType.ABORTED, 4, b"")
        await ticks(ctx, 100)

    benches = frames, requests, bench
    simulate(core.port, *benches, background=[core.run, core.listen], limit=5000)
    assert core.aborts == 1 and core.begun == [] and core.memory[0].tolist() == [0] * 4


def test_acknowledges():
    core = ModelledCore(CHIP)

    async def bench(ctx):
        await send(ctx, core.port.frames.ack, [3, 255])
        assert await core.answer(ctx) == (FrameType.ACK, 3, b"")
        assert await core.answer(ctx) == (FrameType.ACK, 255, b"")

    core.simulate(bench)
