"""The C driver as a library, and a register space of numpy for it to talk to."""

import ctypes
import subprocess
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from weft.commands import Job, JobFlag, Load, Region, result
from weft.geometry import memories
from weft.host import GoldenTransport
from weft.host.packing import pack, unpack
from weft.host.transport import TransportTimeout
from weft.kit.documents import documents
from weft.kit.driver import driver
from weft.register_map import interrupts, registers

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-O1"]
HOOKS = """\
#include <stdint.h>
extern uint32_t (*test_read)(uint32_t);
extern void (*test_write)(uint32_t, uint32_t);
extern uintptr_t test_memory;
#define WEFT_READ(base, offset) test_read((uint32_t)((uintptr_t)(base) + (offset)))
#define WEFT_WRITE(base, offset, value) test_write((uint32_t)((uintptr_t)(base) + (offset)), value)
#define WEFT_ADDRESS(pointer) ((uint32_t)((uintptr_t)(pointer) - test_memory))
"""
GLUE = """\
#include "weft.h"
uint32_t (*test_read)(uint32_t);
void (*test_write)(uint32_t, uint32_t);
uintptr_t test_memory;
size_t test_bytes(void);
void test_limit(weft_core *core, uint32_t limit);
void test_done(weft_core *core, void (*done)(weft_core *, int, void *));
void test_buffer(weft_core *core, uint8_t *buffer, size_t bytes, uint8_t *results,
                 size_t results_bytes, int (*exchange)(weft_core *, const void *, size_t, void *,
                                                       size_t, unsigned *));
size_t test_bytes(void) { return sizeof(weft_core); }
void test_limit(weft_core *core, uint32_t limit) { core->limit = limit; }
void test_done(weft_core *core, void (*done)(weft_core *, int, void *)) { core->done = done; }
void test_buffer(weft_core *core, uint8_t *buffer, size_t bytes, uint8_t *results,
                 size_t results_bytes, int (*exchange)(weft_core *, const void *, size_t, void *,
                                                       size_t, unsigned *))
{
#if !WEFT_WINDOWS
    core->buffer = buffer;
    core->buffer_bytes = bytes;
#endif
#if WEFT_STREAM
    core->results = results;
    core->results_bytes = results_bytes;
    core->exchange = exchange;
#endif
    (void)core, (void)buffer, (void)bytes, (void)results, (void)results_bytes, (void)exchange;
}
"""
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
EXCHANGE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
    ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint),
)
_P, _U, _D = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_ssize_t


class Weights(ctypes.Structure):
    """``weft_weights``."""

    _fields_ = [(name, _U) for name in ("n", "k", "page", "generation")]


class Product(ctypes.Structure):
    """``weft_product``."""

    _fields_ = [
        ("m", _U), ("n", _U), ("k", _U), ("a", _P), ("a_row", _D), ("a_k", _D), ("b", _P),
        ("b_k", _D), ("b_col", _D), ("weights", ctypes.POINTER(Weights)), ("c", _P),
        ("c_row", _D), ("finish", ctypes.c_uint), ("columns", _P), ("bias", _P),
    ]


class Driver:
    """The driver of one core, compiled for this machine, its registers those of ``space``.

    Parameters
    ----------
    library : path
    ip : Ip
    space : object
        With ``read(address)``, ``write(address, value)``, ``memory`` (an array of bytes that the
        core can see) and ``exchange(commands, result_bytes)``, which gives words and a status.
    """

    Weights, DONE, READ = Weights, DONE, READ  # for tests

    def __init__(self, library, ip, space):
        self.ip, self.space = ip, space
        self.lib = ctypes.CDLL(str(library))
        self.taken = 0
        self._kept = [READ(space.read), WRITE(space.write), EXCHANGE(self._exchange)]
        for name, hook in zip(("test_read", "test_write"), self._kept, strict=False):
            _P.in_dll(self.lib, name).value = ctypes.cast(hook, _P).value
        _P.in_dll(self.lib, "test_memory").value = space.memory.ctypes.data
        for name in ("weft_load_b", "test_buffer"):
            getattr(self.lib, name).argtypes = {
                "weft_load_b": [_P, _P, _P, _D, _D, _U, _U],
                "test_buffer": [_P, _P, ctypes.c_size_t, _P, ctypes.c_size_t, EXCHANGE],
            }[name]
        self.lib.test_bytes.restype = ctypes.c_size_t
        self.core = ctypes.create_string_buffer(self.lib.test_bytes())
        self.buffers(1 << 15, 1 << 15)

    def buffers(self, commands, results):
        """Memory for what is packed, so many bytes of it."""
        self._kept += [packed := self.room((commands,), np.uint8)]
        self._kept += [words := self.room((results,), np.uint8)]
        self.lib.test_buffer(
            self.core, packed.ctypes.data, commands, words.ctypes.data, results, self._kept[2]
        )

    def room(self, shape, dtype, skew=0):
        """An array in the memory that the core sees, ``skew`` bytes off the next 64."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        start = -(-self.taken // 64) * 64 + skew
        self.taken = start + size
        assert self.taken <= len(self.space.memory)
        return self.space.memory[start : start + size].view(dtype).reshape(shape)

    def put(self, array, order="C", skew=0):
        """A copy of ``array`` there; with order F its columns lie side by side."""
        place = self.room(array.shape[::-1] if order == "F" else array.shape, array.dtype, skew)
        place = place.T if order == "F" else place
        place[...] = array
        return place

    def call(self, name, *arguments):
        """A function of the driver, for this core."""
        return getattr(self.lib, name)(self.core, *arguments)

    def product(self, a, b, c, *, n=None, finish=0, columns=None, bias=None, weights=None):
        """``weft_product`` of arrays; ``b`` is None with weights."""
        given = Product(
            m=a.shape[0], n=c.shape[1], k=a.shape[1], a=a.ctypes.data, a_row=a.strides[0],
            a_k=a.strides[1], c=c.ctypes.data, c_row=c.strides[0], finish=int(finish),
        )
        if b is not None:
            given.b, (given.b_k, given.b_col) = b.ctypes.data, b.strides
        if weights is not None:
            given.weights = ctypes.pointer(weights)
        for name, array in (("columns", columns), ("bias", bias)):
            if array is not None:
                setattr(given, name, array.ctypes.data)
        return given

    def _exchange(self, core, commands, size, results, result_size, status):
        words, ended = self.space.exchange(ctypes.string_at(commands, size), result_size)
        assert len(words) <= result_size
        ctypes.memmove(results, words, len(words)) if words else None
        status[0] = ended
        return 0


class Space:
    """The register space of an ``Ip``, of numpy; words of commands go to a golden core."""

    def __init__(self, ip, seed=1, memory=1 << 18):
        self.ip, self.config = ip, ip.config
        self.random = np.random.default_rng(seed)
        self.memory = np.zeros(memory, np.uint8)
        self.names = {r.address: r.name for r in registers(ip)}
        self.bits = {f.name: 1 << f.low for f in interrupts(ip)}
        self.values = dict.fromkeys(self.names.values(), 0)
        self.refused = 0
        self.silent = False  # an aborted bus: nothing is ever ready
        self._reset()

    def _reset(self):
        self.core = GoldenTransport(self.config)
        self.stream, self.jobs, self.words = bytearray(), deque(), deque()
        self.room, self.targets, self.open = 0, deque(), None

    def read(self, address):
        """One access."""
        if 0xC00 <= address < 0x1000 and self.ip.windows:
            return self._result()
        name = self.names.get(address)
        if name is None:
            self.refused += 1
            return 0
        if address < 0x400:
            return self.core.read(address // 4, 1, 0)[0]
        if name == "command_room":
            self.room = 0 if self.silent else int(self.random.integers(0, 4))
            return self.room
        if name == "result_level":
            return self._level()
        if name == "descriptor_room":
            return 0 if self.silent else int(self.random.integers(0, 3))
        return self.values[name]

    def write(self, address, value):
        """One access."""
        if 0x800 <= address < 0xC00 and self.ip.windows:
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
        elif name == "submit":
            self._descriptor([self.values[f"descriptor_{n}"] for n in range(16)])
        else:
            self.values[name] = value

    def exchange(self, commands, size):
        """What stands for the caller's streams."""
        self.core.send(commands)
        packets = self._packets()
        assert len(packets) == bool(size)
        return packets[0] if packets else (b"", 0)

    def _packets(self):
        """What has ended, as words and status."""
        found, data = [], b""
        while True:
            try:
                packet = self.core.receive(0)
            except TransportTimeout:
                return found
            data += packet.data
            if packet.last:
                found.append((data, int(packet.status)))
                data = b""
                self._end(packet)

    def _end(self, packet):
        self.values["ended"] += 1
        self.values["last"] = packet.tag | int(packet.status) << 16
        self.values["irq_status"] |= self.bits["done"]
        if packet.status:
            self.values["irq_status"] |= self.bits["failed"]

    def _send(self, data):
        self.stream += data
        whole = len(self.stream) // self.config.bytes_in * self.config.bytes_in
        self.core.send(bytes(self.stream[:whole]))
        del self.stream[:whole]
        for data, status in self._packets():
            data = data or bytes(self.config.bytes_out)
            assert len(data) <= 2048 - 32, "results of a job do not fit behind the window"
            self.jobs.append((data, status))

    def _level(self):
        if not self.jobs or self.random.integers(0, 2):  # some time passes
            return 0
        data, status = self.jobs[0]
        return len(data) // 4 | 1 << 16 | status << 24

    def _result(self):
        if not self.words:
            data, _ = self.jobs.popleft()
            self.words.extend(np.frombuffer(data, "<u4"))
        return int(self.words.popleft())

    def _descriptor(self, words):
        header = b"".join(word.to_bytes(4, "little") for word in words[:8])
        address, stride, lines, k, order = words[8:13]
        self.core.send(header + bytes(max(0, self.config.bytes_in - 32)))
        if header[0] == Job.opcode:
            self.targets.append((Job.unpack(header), address, stride))
        else:
            self.core.send(self._fetch(Load.unpack(header), address, stride, lines, k, order))
        for data, status in self._packets():
            job, address, stride = self.targets.popleft()
            if not status:
                self._store(job, data, address, stride)

    def _fetch(self, load, address, stride, lines, k, order):
        operand = memories(self.config)[load.operand]
        size = -(-load.words // operand.group) * operand.segments * operand.stream * load.panels
        if order == 2:
            assert address % self.config.bytes_in == 0
            return self.memory[address : address + size].tobytes()
        assert load.operand in (Region.A, Region.B)
        assert operand.panels(lines) == load.panels
        shape, value = (lines, k), operand.size
        strides = (stride, value) if order == 0 else (value, stride)
        place = self.memory[address:].view() if value == 1 else self.memory[address:]
        end = address + (lines - 1) * strides[0] + (k - 1) * strides[1] + value
        found = np.lib.stride_tricks.as_strided(
            place[: end - address][:1].view(), (*shape, value), (*strides, 1)
        )
        return pack(np.ascontiguousarray(found).view(f"<u{value}")[..., 0], operand)

    def _store(self, job, data, address, stride):
        number = result(self.config, JobFlag(job.flags))
        values = unpack(data, job.m, job.n, self.config, f"u{number.bytes}")
        for row, line in enumerate(values):
            start = address + row * stride
            self.memory[start : start + line.nbytes] = line.view(np.uint8)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The path of the driver's library for an Ip; each is compiled once."""
    made = {}

    def library(ip):
        key = repr(ip)
        if key not in made:
            folder = tmp_path_factory.mktemp("driver")
            header = f"{ip.name}_regs.h"
            files = driver(ip) | {
                header: documents(ip, "0")[header], "hooks.h": HOOKS.encode(),
                "glue.c": GLUE.encode(),
            }
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            sources = [name for name in files if name.endswith(".c")]
            command = [
                "gcc", *FLAGS, "-shared", "-fPIC", "-include", "hooks.h", *sources, "-o", "lib.so"
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0 and not done.stderr, done.stderr
            made[key] = folder / "lib.so"
        return made[key]

    return library


@pytest.fixture
def golden(compiled):
    """A driver on a golden core behind a bus: ``golden(ip)``."""
    def make(ip, **options):
        return Driver(compiled(ip), ip, Space(ip, **options))

    return make

