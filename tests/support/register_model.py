"""A model of a core's registers, with its memory, for the C driver of a kit."""

from collections import deque

import numpy as np
from golden_stream import GoldenStream

from weft.commands import Job, JobFlag, Load, Region, result
from weft.geometry import memories
from weft.host.packing import pack, unpack
from weft.host.transport import TransportTimeout
from weft.register_map import interrupts, registers

__all__ = ["HookedRegisterModel", "RegisterModel"]


class RegisterModel:
    """The registers of an ``Ip``, its memory in numpy, and a golden core that executes commands.

    Jobs end at random while registers are read.

    Attributes
    ----------
    never_ready : bool
        FIFOs and descriptor queue have no free entry.
    jobs_stalled : bool
        No job ends.
    forced_status : dict
        Status by tag, for jobs that must fail.
    """

    def __init__(self, ip, seed=1, memory=1 << 18):
        self.ip, self.config = ip, ip.array
        self.random = np.random.default_rng(seed)
        self.memory = np.zeros(memory, np.uint8)
        self.names = {r.address: r.name for r in registers(ip)}
        self.bits = {f.name: 1 << f.low for f in interrupts(ip)}
        self.values = dict.fromkeys(self.names.values(), 0) | {"dma_limit": 0xFFFFFFFF}
        self.access_errors = 0
        self.never_ready = self.jobs_stalled = False
        self.forced_status = {}
        self._reset()

    def _reset(self):
        self.core = GoldenStream(self.config)
        self.stream, self.jobs, self.words = bytearray(), deque(), deque()
        self.cmd_free, self.targets = 0, {}
        for name in ("jobs_done", "last_job", "irq_status"):
            self.values[name] = 0

    def read(self, address):
        """Read a register."""
        if 0xC00 <= address < 0x1000 and self.ip.has_fifo_ports:
            return self._result()
        name = self.names.get(address)
        if name is None:
            self.access_errors += 1
            return 0
        if not self.jobs_stalled and self.random.integers(0, 3) == 0:
            self.end_job()
        if address < 0x400:
            return self.core.read(address // 4, 1, 0)[0]
        if name == "cmd_fifo_free":
            drained = 0 if self.never_ready else int(self.random.integers(0, 40))  # since last read
            self.cmd_free = 0 if self.never_ready else min(511, self.cmd_free + drained)
            return self.cmd_free
        if name == "result_level":
            return self._level()
        if name == "result_tag":
            return self.jobs[0][0] if self.jobs else 0
        if name == "desc_free":
            return 0 if self.never_ready else int(self.random.integers(0, 3))
        return self.values[name]

    def write(self, address, value):
        """Write a register."""
        if 0x800 <= address < 0xC00 and self.ip.has_fifo_ports:
            assert self.cmd_free, "a word was written to a full FIFO"
            self.cmd_free -= 1
            self._send(value.to_bytes(4, "little"))
            return
        name = self.names[address]
        if name == "irq_status":
            self.values[name] &= ~value
        elif name == "control":
            if value & 1:
                self._reset()
        elif name == "doorbell":
            self._descriptor([self.values[f"descriptor_{n}"] for n in range(16)])
        else:
            self.values[name] = value

    def exchange(self, commands, size):
        """Bus stream: send commands, and receive the result packet, if one is expected."""
        self.core.send_words(commands)
        ended = self._next()
        assert (ended is None) == (size == 0)
        return ended[1:] if ended else (b"", 0)

    @property
    def irq(self):
        """The level of the interrupt line."""
        return bool(self.values["irq_status"] & self.values["irq_enable"])

    def end_job(self):
        """End the next job, if one is complete; whether a job ended."""
        ended = self._next()
        if not ended:
            return False
        tag, data, status = ended
        if self.ip.has_fifo_ports:
            data = data or bytes(self.config.bytes_out)
            assert len(data) <= 2048 - 32, "results of a job do not fit the FIFO"
            self.jobs.append((tag, data, status))
        elif not status:
            self._store(data, *self.targets.pop(tag))
        return True

    def end_foreign_job(self, tag, status=0, words=()):
        """End a job that the driver has not submitted."""
        self._end(tag, status)
        if self.ip.has_fifo_ports:
            self.jobs.append((tag, np.array(words or [0], "<u4").tobytes(), status))

    def _next(self):
        """Tag, result bytes and status of the next complete job, or None."""
        data = b""
        try:
            packet = self.core.receive(0)
            while not packet.last:
                data += packet.data
                packet = self.core.receive(0)
        except TransportTimeout:
            assert not data
            return None
        status = self.forced_status.get(packet.tag, int(packet.status))
        self._end(packet.tag, status)
        return packet.tag, data + packet.data, status

    def _end(self, tag, status):
        self.values["jobs_done"] += 1
        self.values["last_job"] = tag | status << 16
        self.values["irq_status"] |= self.bits["done"]
        if status:
            self.values["irq_status"] |= self.bits["failed"]

    def _send(self, data):
        self.stream += data
        size = len(self.stream) // self.config.bytes_in * self.config.bytes_in  # whole words
        self.core.send_words(bytes(self.stream[:size]))
        del self.stream[:size]

    def _level(self):
        if not self.jobs:
            return 0
        _, data, status = self.jobs[0]
        return len(data) // 4 | 1 << 16 | status << 24

    def _result(self):
        if not self.words:
            _, data, _ = self.jobs.popleft()
            self.words.extend(np.frombuffer(data, "<u4"))
        return int(self.words.popleft())

    def _descriptor(self, words):
        header = b"".join(word.to_bytes(4, "little") for word in words[:8])
        address, stride, lines, k, order = words[8:13]
        if self._out_of_window(header, *words[8:13]):
            self.values["irq_status"] |= self.bits["bad_descriptor"] | self.bits["bad_address"]
            return
        self.core.send_words(header + bytes(max(0, self.config.bytes_in - 32)))
        if header[0] == Job.opcode:
            job = Job.unpack(header)
            if JobFlag.KEEP not in job.flags:
                self.targets[job.tag] = job, address, stride
        else:
            self.core.send_words(self._fetch(Load.unpack(header), address, stride, lines, k, order))

    def _out_of_window(self, header, address, stride, lines, k, order):
        """Whether a descriptor accesses a byte outside the window."""
        step, job = _signed(stride), header[0] == Job.opcode and Job.unpack(header)
        if job:
            runs, size = job.m, job.n * result(self.config, JobFlag(job.flags)).bytes
            if JobFlag.KEEP in job.flags:
                return False
        elif order == 2:
            load = Load.unpack(header)
            operand = memories(self.config)[load.operand]
            words = -(-load.words // operand.group) * operand.segments * load.panels
            runs, step, size = 1, 0, words * operand.stream
        else:
            value = self.config.data_type.a.bytes
            runs, size = (lines, k * value) if order == 0 else (k, lines * value)
        starts = address, address + (runs - 1) * step
        base, limit = self.values.get("dma_base", 0), self.values["dma_limit"]
        return min(starts) < base or max(starts) + size - 1 > limit

    def _fetch(self, load, address, stride, lines, k, order):
        operand = memories(self.config)[load.operand]
        size = -(-load.words // operand.group) * operand.segments * operand.stream * load.panels
        if order == 2:
            assert address % self.config.bytes_in == 0
            return self.memory[address : address + size].tobytes()
        assert load.operand in (Region.A, Region.B)
        assert operand.panels(lines) == load.panels
        size = operand.size
        by_line, by_k = (_signed(stride), size) if order == 0 else (size, _signed(stride))
        addresses = address + by_line * np.arange(lines)[:, None] + by_k * np.arange(k)
        data = self.memory[addresses[..., None] + np.arange(size)]
        return pack(data.view(f"<u{size}")[..., 0], operand)

    def _store(self, data, job, address, stride):
        number = result(self.config, JobFlag(job.flags))
        values = unpack(data, job.m, job.n, self.config, f"u{number.bytes}")
        for row, line in enumerate(values):
            start = address + row * _signed(stride)
            self.memory[start : start + line.nbytes] = line.view(np.uint8)


def _signed(stride):
    return stride - (stride >> 31 << 32)


class HookedRegisterModel(RegisterModel):
    """Calls ``hook(count)`` after each access; accesses inside the hook do not count."""

    def __init__(self, ip, **more):
        super().__init__(ip, **more)
        self.hook, self.count, self.writes, self._inside = None, 0, 0, False

    def read(self, address):
        value = super().read(address)
        self._accessed()
        return value

    def write(self, address, value):
        super().write(address, value)
        self.writes += 1
        self._accessed()

    def _accessed(self):
        if self._inside or self.hook is None:
            return
        self.count += 1
        self._inside = True
        try:
            self.hook(self.count)
        finally:
            self._inside = False
