"""Kits; the C driver as a library, and a register space of numpy for it to talk to."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from weft.commands import Job, JobFlag, Load, Region, result
from weft.config import Config
from weft.geometry import memories
from weft.host import GoldenTransport
from weft.host.packing import pack, unpack
from weft.host.transport import TransportTimeout
from weft.ip import Ip
from weft.kit.build import build
from weft.kit.documents import documents
from weft.kit.driver import driver
from weft.kit.files.weft_driver import Driver, compiled
from weft.kit.texts import text
from weft.register_map import interrupts, registers


class Space:
    """The register space of an ``Ip``, of numpy; words of commands go to a golden core.

    Time passes as registers are read: then jobs end, at random.

    Attributes
    ----------
    silent : bool
        Nothing is ever ready.
    frozen : bool
        No job ends.
    verdicts : dict
        Status by tag of the jobs that are to fail.
    """

    def __init__(self, ip, seed=1, memory=1 << 18):
        self.ip, self.config = ip, ip.config
        self.random = np.random.default_rng(seed)
        self.memory = np.zeros(memory, np.uint8)
        self.names = {r.address: r.name for r in registers(ip)}
        self.bits = {f.name: 1 << f.low for f in interrupts(ip)}
        self.values = dict.fromkeys(self.names.values(), 0) | {"dma_limit": 0xFFFFFFFF}
        self.refused = 0
        self.silent = self.frozen = False
        self.verdicts = {}
        self._reset()

    def _reset(self):
        self.core = GoldenTransport(self.config)
        self.stream, self.jobs, self.words = bytearray(), deque(), deque()
        self.room, self.targets = 0, {}
        for name in ("jobs_done", "last_job", "irq_status"):
            self.values[name] = 0

    def read(self, address):
        """One access."""
        if 0xC00 <= address < 0x1000 and self.ip.has_fifo_ports:
            return self._result()
        name = self.names.get(address)
        if name is None:
            self.refused += 1
            return 0
        if not self.frozen and self.random.integers(0, 3) == 0:
            self.work()
        if address < 0x400:
            return self.core.read(address // 4, 1, 0)[0]
        if name == "cmd_fifo_free":
            taken = 0 if self.silent else int(self.random.integers(0, 40))  # since the last look
            self.room = 0 if self.silent else min(511, self.room + taken)
            return self.room
        if name == "result_level":
            return self._level()
        if name == "result_tag":
            return self.jobs[0][0] if self.jobs else 0
        if name == "desc_free":
            return 0 if self.silent else int(self.random.integers(0, 3))
        return self.values[name]

    def write(self, address, value):
        """One access."""
        if 0x800 <= address < 0xC00 and self.ip.has_fifo_ports:
            assert self.room, "a word was written without room"
            self.room -= 1
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
        """What stands for the caller's streams."""
        self.core.send(commands)
        found = self._next()
        assert (found is None) == (size == 0)
        return found[1:] if found else (b"", 0)

    @property
    def irq(self):
        """The level of the interrupt."""
        return bool(self.values["irq_status"] & self.values["irq_enable"])

    def work(self):
        """The next job ends, if there is one that may; whether it did."""
        found = self._next()
        if not found:
            return False
        tag, data, status = found
        if self.ip.has_fifo_ports:
            data = data or bytes(self.config.bytes_out)
            assert len(data) <= 2048 - 32, "results of a job do not fit behind the window"
            self.jobs.append((tag, data, status))
        elif not status:
            self._store(data, *self.targets.pop(tag))
        return True

    def foreign(self, tag, status=0, words=()):
        """A job that nobody asked this driver for ends."""
        self._end(tag, status)
        if self.ip.has_fifo_ports:
            self.jobs.append((tag, np.array(words or [0], "<u4").tobytes(), status))

    def _next(self):
        """Tag, words and status of the next job that has ended, or None."""
        data = b""
        try:
            packet = self.core.receive(0)
            while not packet.last:
                data += packet.data
                packet = self.core.receive(0)
        except TransportTimeout:
            assert not data
            return None
        status = self.verdicts.get(packet.tag, int(packet.status))
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
        whole = len(self.stream) // self.config.bytes_in * self.config.bytes_in
        self.core.send(bytes(self.stream[:whole]))
        del self.stream[:whole]

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
        if self._beyond(header, *words[8:13]):
            self.values["irq_status"] |= self.bits["bad_descriptor"] | self.bits["bad_address"]
            return
        self.core.send(header + bytes(max(0, self.config.bytes_in - 32)))
        if header[0] == Job.opcode:
            job = Job.unpack(header)
            if JobFlag.KEEP not in job.flags:
                self.targets[job.tag] = job, address, stride
        else:
            self.core.send(self._fetch(Load.unpack(header), address, stride, lines, k, order))

    def _beyond(self, header, address, stride, lines, k, order):
        """Whether a byte that a descriptor touches lies outside of the window."""
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
            value = self.config.format.a.bytes
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
        places = address + by_line * np.arange(lines)[:, None] + by_k * np.arange(k)
        found = self.memory[places[..., None] + np.arange(size)]
        return pack(found.view(f"<u{size}")[..., 0], operand)

    def _store(self, data, job, address, stride):
        number = result(self.config, JobFlag(job.flags))
        values = unpack(data, job.m, job.n, self.config, f"u{number.bytes}")
        for row, line in enumerate(values):
            start = address + row * _signed(stride)
            self.memory[start : start + line.nbytes] = line.view(np.uint8)


def _signed(stride):
    return stride - (stride >> 31 << 32)


@pytest.fixture(scope="session")
def kits():
    """A small core and the files of its kit, ``kits(bus, **more)``; each is made once."""
    made = {}

    def kit(bus, clocks=1, pipelined=False, prefix="weft", **fields):
        key = bus, clocks, pipelined, prefix, *fields.items()
        if key not in made:
            config = Config(**{"rows": 2, "cols": 4, "a_words": 64, "b_words": 64, **fields})
            ip = Ip(
                config=config, bus=bus, clocks=clocks, pipelined=pipelined, prefix=prefix
            )
            made[key] = ip, build(ip)
        return made[key]

    return kit


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The path of the driver's library for an Ip; each is compiled once.

    ``changes`` are (file, old, new).
    """
    made = {}

    def library(ip, changes=()):
        key = repr(ip), changes
        if key not in made:
            folder = tmp_path_factory.mktemp("driver")
            header = f"{ip.name}_regs.h"
            files = driver(ip) | {header: documents(ip, "0")[header]}
            files |= {name: text(name).encode() for name in ("driver_hooks.h", "driver_glue.c")}
            for name, old, new in changes:
                assert files[name].count(old.encode()) == 1
                files[name] = files[name].replace(old.encode(), new.encode())
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            sources = sorted(folder.glob("*.c"))
            made[key] = compiled(sources, folder / "driver_hooks.h", folder)
        return made[key]

    return library


class HookedSpace(Space):
    """Calls ``hook(count)`` after each access, with the accesses so far; not for its own ones."""

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


@pytest.fixture(scope="session")
def space():
    """`Space`."""
    return Space


@pytest.fixture
def golden(libraries):
    """A driver on a golden core behind a bus: ``golden(ip)``, its sources with ``changes``."""
    return lambda ip, *changes: Driver(libraries(ip, changes), Space(ip))


@pytest.fixture
def hooked(libraries):
    """The same on a `HookedSpace`, looked at already: ``hooked(ip, seed)``."""
    def made(ip, seed=1):
        driver = Driver(libraries(ip), HookedSpace(ip, seed=seed))
        assert driver.call("weft_init", None) == 0
        driver.call("test_limit", 300)
        return driver

    return made
