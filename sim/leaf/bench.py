"""A MAC leaf alone, as a program: arrays of steps in, arrays of sums out, millions a second."""

import subprocess
from pathlib import Path

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.sim import verilated

__all__ = ["LeafBench", "program", "sums"]

BLOCK = 1 << 16  # steps a block
STEP = np.dtype([("a", "<u2"), ("b", "<u2"), ("c", "<u4"), ("orders", "<u4")])


class LeafBench(wiring.Component):
    """A leaf of one BF16 pair a step with the decoders of its operands, all ports in step.

    What belongs to a step goes in together, and its sum comes out :attr:`LATENCY` cycles later.

    Parameters
    ----------
    mac : type of `Mac`
        With decoders and a START.

    Attributes
    ----------
    a, b : In, bfloat16
    c : In, binary32
        Where the sum starts from, with ``start``.
    en, clear, start : In
        Orders, as the leaf has them.
    sum : Out, binary32
    """

    def __init__(self, mac):
        self.mac = mac
        self.LATENCY = mac.OPERAND_DECODER.LATENCY + mac.LATENCY
        super().__init__({
            "a": In(16), "b": In(16), "c": In(32), "en": In(1), "clear": In(1), "start": In(1),
            "sum": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac(depth=1)
        m.submodules.a = a = mac.OPERAND_DECODER()
        m.submodules.b = b = mac.OPERAND_DECODER()
        m.submodules.c = c = mac.START_DECODER()
        # What a sum starts from is said when the sum comes round.
        start = a.LATENCY + mac.LATENCY - mac.SLOTS
        m.d.comb += [
            a.i.eq(self.a),
            b.i.eq(self.b),
            mac.a[0].eq(a.o),
            mac.b[0].eq(b.o),
            mac.en.eq(_late(m, self.en, a.LATENCY)),
            mac.clear.eq(_late(m, self.clear, start)),
            mac.preload.eq(_late(m, self.start, start)),
            c.i.eq(_late(m, self.c, start - c.LATENCY)),
            mac.init.eq(c.o),
            self.sum.eq(mac.sum),
        ]
        return m


def program(mac) -> Path:
    """The program of a leaf: the one built before, or a new one.

    Parameters
    ----------
    mac : type of `Mac`
        As `LeafBench` takes it.

    Raises
    ------
    weft.sim.tools.ToolError
        Where a tool is missing or too old, or does not compile the leaf.
    """
    from weft.hw.export import to_verilog

    bench = LeafBench(mac)
    verilog = to_verilog(bench, name="leaf")
    harness = Path(__file__).with_name("leaf.cpp")
    return verilated.executable(
        "leaves", mac.__name__, [verilog], lambda: verilog, harness,
        top="leaf", defines=[f"LATENCY={bench.LATENCY}"],
    )


def sums(program, a, b, c=0, *, en=1, clear=0, start=1) -> np.ndarray:
    """What each step leaves behind in its sum.

    Step t works on sum t modulo SLOTS. All arguments are broadcast to one shape, whose last axis
    is the fastest: of arrays [K, SLOTS] a column is one sum with K steps. Steps go out in blocks,
    so that memory beyond the arrays is bounded.

    Parameters
    ----------
    program : Path
        Of a leaf: see `program`.
    a, b : integers of 16 bits
        bfloat16, as bits.
    c : integers of 32 bits
        binary32, as bits.
    en, clear, start : bool
        A step; start from +0; start from ``c``. By default each step is a sum of its own.

    Returns
    -------
    uint32 [...]
        binary32, as bits.

    Raises
    ------
    TypeError, ValueError
        For what is no integer, or does not fit its bits.
    RuntimeError
        Where the program does not answer.
    """
    fields = np.broadcast_arrays(
        _bits("a", a, 16), _bits("b", b, 16), _bits("c", c, 32),
        _bits("en", en, 1), _bits("clear", clear, 1), _bits("start", start, 1),
    )
    found = []
    try:
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for block in _blocks(fields):
                process.stdin.write(len(block).to_bytes(4, "little"))
                process.stdin.write(block)
                process.stdin.flush()
                found.append(_answer(process.stdout))
            process.stdin.close()
            found.append(_answer(process.stdout))
    except (BrokenPipeError, EOFError):
        status = process.wait()
        raise RuntimeError(
            f"{program} must answer every step, not end with status {status}"
        ) from None
    return np.concatenate(found).reshape(fields[0].shape)


def _late(m, value, cycles):
    """``value`` so many cycles later."""
    for stage in range(cycles):
        register = Signal.like(value, name=f"late_{stage}")
        m.d.sync += register.eq(value)
        value = register
    return value


def _bits(name, values, width):
    """``values`` as an array, refused where they are not integers of ``width`` bits."""
    array = np.asarray(values)
    if array.dtype.kind not in "bui":
        raise TypeError(f"{name} must be of integers, not of {array.dtype}")
    limit = (1 << width) - 1
    if array.size and not 0 <= array.min() <= array.max() <= limit:
        wrong = array[(array < 0) | (array > limit)].flat[0]
        raise ValueError(f"{name} must be in 0..{limit}, not {wrong}")
    return array


def _blocks(fields):
    """Steps in blocks, as the program reads them, of arrays of one shape."""
    a, b, c, en, clear, start = (field.flat for field in fields)
    for first in range(0, fields[0].size, BLOCK):
        part = slice(first, first + BLOCK)
        block = np.empty(len(a[part]), STEP)
        block["a"], block["b"], block["c"] = a[part], b[part], c[part]
        block["orders"] = en[part] | clear[part] * 2 | start[part] * 4
        yield block


def _answer(stream):
    """The sums of an answer; EOFError where the program ended before it."""
    count = stream.read(4)
    data = stream.read(4 * int.from_bytes(count, "little"))
    if len(count) < 4 or len(data) < 4 * int.from_bytes(count, "little"):
        raise EOFError
    return np.frombuffer(data, "<u4")
