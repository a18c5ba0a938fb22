"""A MAC cell as an executable simulation: arrays of steps in, arrays of sums out."""

import subprocess
from pathlib import Path

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.sim import verilated

__all__ = ["AlignedMacCell", "executable", "sums"]

BLOCK = 1 << 16  # steps in a block
STEP = np.dtype([("a", "<u2"), ("b", "<u2"), ("c", "<u4"), ("pe_control", "<u4")])


class AlignedMacCell(wiring.Component):
    """A BF16 MAC cell with its decoders, and with delays that align all inputs of a step.

    All inputs of a step are valid in the same cycle. Its sum follows :attr:`LATENCY` cycles later.

    Parameters
    ----------
    mac : type of `Mac`
        Takes one pair a step; has decoders and a START.

    Attributes
    ----------
    a : In, bfloat16
    b : In, bfloat16
    c : In, binary32
        The start of the sum; valid with ``start``.
    en : In, 1 bit
        A step.
    clear : In, 1 bit
        Start from +0.
    start : In, 1 bit
        Start from ``c``.
    sum : Out, binary32
        LATENCY cycles after its step.
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
        # The cell selects the start when the sum returns to its adder.
        start = a.LATENCY + mac.LATENCY - mac.SLOTS
        m.d.comb += [
            a.i.eq(self.a),
            b.i.eq(self.b),
            mac.a[0].eq(a.o),
            mac.b[0].eq(b.o),
            mac.en.eq(_delayed(m, self.en, a.LATENCY)),
            mac.clear.eq(_delayed(m, self.clear, start)),
            mac.preload.eq(_delayed(m, self.start, start)),
            c.i.eq(_delayed(m, self.c, start - c.LATENCY)),
            mac.init.eq(c.o),
            self.sum.eq(mac.sum),
        ]
        return m


def executable(mac) -> Path:
    """The executable simulation of a MAC cell, from the cache or newly built.

    Parameters
    ----------
    mac : type of `Mac`
        As for `AlignedMacCell`.

    Raises
    ------
    weft.sim.tools.ToolError
        If a tool is missing or too old, or does not compile the MAC cell.
    """
    from weft.hw.export import to_verilog

    component = AlignedMacCell(mac)
    verilog = to_verilog(component, name="mac_cell")
    harness = Path(__file__).with_name("mac_cell.cpp")
    return verilated.executable(
        "mac_cells", mac.__name__, [verilog], lambda: verilog, harness,
        top="mac_cell", defines=[f"LATENCY={component.LATENCY}"],
    )


def sums(executable, a, b, c=0, *, en=1, clear=0, start=1) -> np.ndarray:
    """The sum after each step.

    Step t adds to sum t modulo SLOTS. All arguments are broadcast to one shape, and the last axis
    is the fastest: in arrays [K, SLOTS] a column is one sum with K steps. Steps are sent in blocks,
    which bounds the memory beyond the arrays.

    Parameters
    ----------
    executable : Path
        From `executable`.
    a, b : integers of 16 bits
        The bits of bfloat16 values.
    c : integers of 32 bits
        The bits of binary32 values.
    en : bool
        A step.
    clear : bool
        Start from +0.
    start : bool
        Start from ``c``. By default each step is a sum of its own.

    Returns
    -------
    uint32 [...]
        The bits of binary32 values.

    Raises
    ------
    TypeError, ValueError
        If a value is not an integer, or is out of range.
    RuntimeError
        If the executable ends early.
    """
    fields = np.broadcast_arrays(
        _bits("a", a, 16), _bits("b", b, 16), _bits("c", c, 32),
        _bits("en", en, 1), _bits("clear", clear, 1), _bits("start", start, 1),
    )
    answers = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        with subprocess.Popen([executable], **pipes) as process:
            for block in _blocks(fields):
                process.stdin.write(len(block).to_bytes(4, "little"))
                process.stdin.write(block)
                process.stdin.flush()
                answers.append(_answer(process.stdout))
            process.stdin.close()
            answers.append(_answer(process.stdout))
    except (BrokenPipeError, EOFError):
        status = process.wait()
        raise RuntimeError(
            f"{executable} ended with status {status} before it answered all steps"
        ) from None
    return np.concatenate(answers).reshape(fields[0].shape)


def _delayed(m, value, cycles):
    """``value``, ``cycles`` cycles later."""
    for stage in range(cycles):
        register = Signal.like(value, name=f"delayed_{stage}")
        m.d.sync += register.eq(value)
        value = register
    return value


def _bits(name, values, width):
    """``values`` as an array of integers; raises if one of them does not fit in ``width`` bits."""
    array = np.asarray(values)
    if array.dtype.kind not in "bui":
        raise TypeError(f"{name} must be of integers, not of {array.dtype}")
    limit = (1 << width) - 1
    if array.size and not 0 <= array.min() <= array.max() <= limit:
        wrong = array[(array < 0) | (array > limit)].flat[0]
        raise ValueError(f"{name} must be in 0..{limit}, not {wrong}")
    return array


def _blocks(fields):
    """The steps in blocks, in the layout that the executable reads."""
    a, b, c, en, clear, start = (field.flat for field in fields)
    for first in range(0, fields[0].size, BLOCK):
        part = slice(first, first + BLOCK)
        block = np.empty(len(a[part]), STEP)
        block["a"], block["b"], block["c"] = a[part], b[part], c[part]
        block["pe_control"] = en[part] | clear[part] * 2 | start[part] * 4
        yield block


def _answer(stream):
    """The sums of an answer; EOFError if the stream ends early."""
    count = stream.read(4)
    data = stream.read(4 * int.from_bytes(count, "little"))
    if len(count) < 4 or len(data) < 4 * int.from_bytes(count, "little"):
        raise EOFError
    return np.frombuffer(data, "<u4")
