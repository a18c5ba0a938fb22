"""An AXI4 memory for benches on Amaranth's simulator, with pauses, latency and protocol checks."""

import random
from collections import deque

from verif.amaranth_bench import ProtocolError, plain

__all__ = ["AxiMemory"]


class AxiMemory:
    """An AXI4 slave; add `run` as a background bench.

    Each channel pauses with probability ``pause``. A burst is answered after up to ``latency``
    cycles. Raises ProtocolError for a burst that crosses 4 KiB, for a WLAST that does not match
    AWLEN, and for an offer that changes before it is taken.

    Parameters
    ----------
    axi : `weft.hw.dma.axi.Axi4`
        Port of the master.
    data_bytes : int
        Bytes of a beat.
    size : int
        Bytes of the memory, from address 0 on. Other addresses have error responses.

    Attributes
    ----------
    memory : bytearray
    bad : set of int
        Addresses of beats with error responses.
    response : int
        Of these beats, and beyond the memory: 2 is SLVERR, 3 is DECERR.
    bursts : list of tuple
        All bursts so far: "ar" or "aw", address, beats.
    """

    def __init__(self, axi, *, data_bytes, size, pause=0.0, latency=0, seed=0):
        self.axi = axi
        self.data_bytes = data_bytes
        self.memory = bytearray(size)
        self.pause = pause
        self.latency = latency
        self.rng = random.Random(seed)
        self.bad = set()
        self.response = 2
        self.bursts = []
        # Beats to read, and responses to writes, each with its cycle; bursts and beats to write.
        self._r_queue, self._b_queue, self._aw_queue, self._w_queue = (deque() for _ in range(4))

    @property
    def idle(self):
        """Whether all bursts have their responses."""
        return not (self._r_queue or self._aw_queue or self._w_queue or self._b_queue)

    async def run(self, ctx):
        """Serve all channels."""
        await self._run(ctx, "ar", "aw", "w")

    async def run_reads(self, ctx):
        """Serve a master that only reads."""
        await self._run(ctx, "ar")

    async def run_writes(self, ctx):
        """Serve a master that only writes."""
        await self._run(ctx, "aw", "w")

    async def _run(self, ctx, *names):
        axi, offered, cycle = self.axi, {}, 0
        inputs = {name: getattr(axi, name) for name in names}
        outputs = {"r": self._r_queue} if "ar" in names else {}
        outputs |= {"b": self._b_queue} if "w" in names else {}
        payloads = dict.fromkeys(outputs)  # valid, and not taken yet
        while True:
            for channel in inputs.values():
                ctx.set(channel.ready, self._fire())
            for name, queue in outputs.items():
                channel = getattr(axi, name)
                if payloads[name] is None and queue and queue[0][0] <= cycle and self._fire():
                    payloads[name] = queue.popleft()[1]
                    ctx.set(channel.payload, payloads[name])
                ctx.set(channel.valid, payloads[name] is not None)
            watched = [x for c in inputs.values() for x in (c.valid, c.ready, c.payload)]
            watched += [getattr(axi, name).ready for name in outputs]
            _, _, *values = await ctx.tick().sample(*watched)
            cycle += 1
            for name, ready in zip(outputs, values[3 * len(inputs) :], strict=True):
                if ready:
                    payloads[name] = None
            for n, name in enumerate(inputs):
                valid, ready, payload = values[3 * n : 3 * n + 3]
                payload = plain(payload)
                if offered.get(name) is not None and (not valid or payload != offered[name]):
                    raise ProtocolError(f"{name} must stay the same until it is taken")
                offered[name] = payload if valid and not ready else None
                if valid and ready:
                    getattr(self, f"_{name}")(cycle, payload)
            self._write(cycle)

    def _fire(self):
        """Whether a channel does not pause in this cycle."""
        return self.rng.random() >= self.pause

    def _response_cycle(self, cycle, queue):
        """The cycle of a response: random, but not before the one of the response before it."""
        due = cycle + self.rng.randint(0, self.latency)
        return max(due, queue[-1][0]) if queue else due

    def _burst(self, name, payload):
        """Check a burst; returns the addresses of its beats."""
        start, beats = payload["addr"], payload["len"] + 1
        if start % self.data_bytes:
            raise ProtocolError(f"{name} must start on a beat, not at 0x{start:x}")
        if start // 4096 != (start + beats * self.data_bytes - 1) // 4096:
            raise ProtocolError(f"{name} must not cross 4 KiB from 0x{start:x}, {beats} beats")
        self.bursts.append((name, start, beats))
        return [start + n * self.data_bytes for n in range(beats)]

    def _ar(self, cycle, payload):
        due = self._response_cycle(cycle, self._r_queue)
        addresses = self._burst("ar", payload)
        for address in addresses:
            error = self._is_error(address)
            word = self.memory[address : address + self.data_bytes]
            word = bytes(self.data_bytes) if error else word
            self._r_queue.append((due, {
                "data": int.from_bytes(word, "little"), "resp": self.response * error,
                "last": address == addresses[-1],
            }))

    def _aw(self, cycle, payload):
        self._aw_queue.append(self._burst("aw", payload))

    def _w(self, cycle, payload):
        self._w_queue.append(payload)

    def _is_error(self, address):
        inside = 0 <= address <= len(self.memory) - self.data_bytes
        return not inside or address in self.bad

    def _write(self, cycle):
        """Write the bursts whose beats have all come."""
        while self._aw_queue and len(self._w_queue) >= len(self._aw_queue[0]):
            addresses = self._aw_queue.popleft()
            error = False
            for address in addresses:
                beat = self._w_queue.popleft()
                if beat["last"] != (address == addresses[-1]):
                    raise ProtocolError(f"WLAST must be at beat {len(addresses)}, and only there")
                if self._is_error(address):
                    error = True
                    continue
                data = beat["data"].to_bytes(self.data_bytes, "little")
                for n in range(self.data_bytes):
                    if beat["strb"] >> n & 1:
                        self.memory[address + n] = data[n]
            due = self._response_cycle(cycle, self._b_queue)
            self._b_queue.append((due, {"resp": self.response * error}))
