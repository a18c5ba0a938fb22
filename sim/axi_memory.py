"""A memory on AXI4, for benches on Amaranth's simulator: it takes its time, and keeps the rules."""

import random
from collections import deque

from weft.sim.amaranth_bench import ProtocolError, plain

__all__ = ["AxiMemory"]


class AxiMemory:
    """A slave whose channels pause at odds ``pause``; add `run` as a background bench.

    It answers after up to ``latency`` cycles. Raises ProtocolError for a burst that crosses 4 KiB,
    for a WLAST that is not where AWLEN has it, and for whatever is taken back once it was offered.

    Parameters
    ----------
    axi : `weft.hw.dma.axi.Axi4`
        The master's.
    data_bytes : int
    size : int
        Bytes of the memory, from address ``base`` on. What lies outside is answered by an error.

    Attributes
    ----------
    memory : bytearray
    bad : set of int
        Addresses, of beats, that are answered by an error.
    bursts : list of tuple
        All that were asked for: "ar" or "aw", address, beats.
    """

    def __init__(self, axi, *, data_bytes, size, base=0, pause=0.0, latency=0, seed=0):
        self.axi = axi
        self.data_bytes = data_bytes
        self.memory = bytearray(size)
        self.base = base
        self.pause = pause
        self.latency = latency
        self.rng = random.Random(seed)
        self.bad = set()
        self.bursts = []
        self._reads, self._writes, self._beats, self._answers = (deque() for _ in range(4))

    @property
    def idle(self):
        """Whether every burst was answered."""
        return not (self._reads or self._writes or self._beats or self._answers)

    async def run(self, ctx):
        """All channels."""
        await self._run(ctx, "ar", "aw", "w")

    async def run_reads(self, ctx):
        """Those of a master that does not write."""
        await self._run(ctx, "ar")

    async def run_writes(self, ctx):
        """Those of a master that does not read."""
        await self._run(ctx, "aw", "w")

    async def _run(self, ctx, *names):
        axi, offered, cycle = self.axi, {}, 0
        inputs = {name: getattr(axi, name) for name in names}
        answers = {"r": self._reads} if "ar" in names else {}
        answers |= {"b": self._answers} if "w" in names else {}
        beats = dict.fromkeys(answers)
        while True:
            for channel in inputs.values():
                ctx.set(channel.ready, self._goes())
            for name, due in answers.items():
                channel = getattr(axi, name)
                if beats[name] is None and due and due[0][0] <= cycle and self._goes():
                    beats[name] = due.popleft()[1]
                    ctx.set(channel.payload, beats[name])
                ctx.set(channel.valid, beats[name] is not None)
            watched = [x for c in inputs.values() for x in (c.valid, c.ready, c.payload)]
            watched += [getattr(axi, name).ready for name in answers]
            _, _, *values = await ctx.tick().sample(*watched)
            cycle += 1
            for name, ready in zip(answers, values[3 * len(inputs) :], strict=True):
                if ready:
                    beats[name] = None
            for n, name in enumerate(inputs):
                valid, ready, payload = values[3 * n : 3 * n + 3]
                payload = plain(payload)
                if offered.get(name) is not None and (not valid or payload != offered[name]):
                    raise ProtocolError(f"{name} must hold what it offers until it is taken")
                offered[name] = payload if valid and not ready else None
                if valid and ready:
                    getattr(self, f"_{name}")(cycle, payload)
            self._write(cycle)

    def _goes(self):
        return self.rng.random() >= self.pause

    def _due(self, cycle, behind):
        """When what is asked for now comes: not before what was asked for earlier."""
        due = cycle + self.rng.randint(0, self.latency)
        return max(due, behind[-1][0]) if behind else due

    def _burst(self, name, payload):
        start, beats = payload["addr"], payload["len"] + 1
        if start % self.data_bytes:
            raise ProtocolError(f"{name} must start on a beat, not at 0x{start:x}")
        if start // 4096 != (start + beats * self.data_bytes - 1) // 4096:
            raise ProtocolError(f"{name} must not cross 4 KiB from 0x{start:x}, {beats} beats")
        self.bursts.append((name, start, beats))
        return [start + n * self.data_bytes for n in range(beats)]

    def _ar(self, cycle, payload):
        due = self._due(cycle, self._reads)
        addresses = self._burst("ar", payload)
        for address in addresses:
            offset, wrong = address - self.base, self._wrong(address)
            word = bytes(self.data_bytes) if wrong else self.memory[
                offset : offset + self.data_bytes
            ]
            self._reads.append((due, {
                "data": int.from_bytes(word, "little"), "resp": 2 * wrong,
                "last": address == addresses[-1],
            }))

    def _aw(self, cycle, payload):
        self._writes.append(self._burst("aw", payload))

    def _w(self, cycle, payload):
        self._beats.append(payload)

    def _wrong(self, address):
        inside = 0 <= address - self.base <= len(self.memory) - self.data_bytes
        return not inside or address in self.bad

    def _write(self, cycle):
        while self._writes and len(self._beats) >= len(self._writes[0]):
            addresses = self._writes.popleft()
            wrong = False
            for address in addresses:
                beat = self._beats.popleft()
                if beat["last"] != (address == addresses[-1]):
                    raise ProtocolError(f"WLAST must be at beat {len(addresses)}, and only there")
                if self._wrong(address):
                    wrong = True
                    continue
                data = beat["data"].to_bytes(self.data_bytes, "little")
                for n in range(self.data_bytes):
                    if beat["strb"] >> n & 1:
                        self.memory[address - self.base + n] = data[n]
            self._answers.append((self._due(cycle, self._answers), {"resp": 2 * wrong}))
