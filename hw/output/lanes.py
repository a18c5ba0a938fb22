"""What a lane of the output does with one value: select, look up, clamp."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.operands import OperandBuffer, ResultBuffer
from weft.hw.delay import pipeline

__all__ = ["LaneSelect", "clamp", "look_up", "onehot_mux"]


# The width to which a scaled sum saturates before the zero point is added.
_SATURATED_BITS = 11


def clamp(m, y, *, zero, low, high, name):
    """``clamp(y + zero, low, high)``, `weft.latencies.CLAMP` cycles later.

    ``y`` has 32 bits; the others have 9 bits. ``zero`` must be valid 2 cycles after ``y``, ``low``
    and ``high`` 3 cycles after ``y``.
    """
    # Beyond the bounds the exact value does not matter: it saturates to fewer bits.
    top = y[_SATURATED_BITS - 1 :]
    all_ones = pipeline(m, top.all(), 1, f"all_ones_{name}")
    fits = all_ones | ~pipeline(m, top.any(), 1, f"any_one_{name}")
    most = (1 << _SATURATED_BITS - 1) - 1
    y = pipeline(m, y, 1, f"y_{name}")
    y = Mux(fits, y[:_SATURATED_BITS].as_signed(), Mux(y[-1], -most - 1, most))
    y = pipeline(m, y, 1, f"saturated_{name}")
    y = pipeline(m, y + zero, 1, f"offset_{name}")
    is_low = pipeline(m, (y - low)[-1], 1, f"is_low_{name}")
    is_high = pipeline(m, (high - y)[-1], 1, f"is_high_{name}")
    y, low, high = (
        pipeline(m, value, 1, f"c_{part}_{name}")
        for part, value in (("y", y[:9]), ("low", low), ("high", high))
    )
    clamped = Mux(is_low, low, Mux(is_high, high, y.as_signed()))
    return pipeline(m, clamped, 1, f"clamped_{name}")


def onehot_mux(m, words, index, name):
    """``words[index]``, two cycles after ``words`` and three cycles after ``index``.

    Two words share a LUT for each bit; the second stage combines the pairs.
    """
    onehot = Signal(len(words), name=f"{name}_onehot", reset_less=True)
    m.d.sync += onehot.eq(1 << index)
    masked = [
        Value.cast(word) & bit.replicate(len(Value.cast(word)))
        for word, bit in zip(words, onehot, strict=True)
    ]
    pairs = []
    for n in range(0, len(masked), 2):
        pairs.append(Signal(len(masked[0]), name=f"{name}_pair_{n}", reset_less=True))
        m.d.sync += pairs[-1].eq(reduce(or_, masked[n : n + 2]))
    selected = Signal(len(pairs[0]), name=name, reset_less=True)
    m.d.sync += selected.eq(reduce(or_, pairs))
    return selected


class LaneSelect(wiring.Component):
    """``sums[lane] = row[index * lanes + lane]``, :meth:`latency` cycles after ``index``.

    Parameters
    ----------
    acc : shape
    cols, lanes : int
    registered : bool
        Whether the result buffer has an output register. The selection then is pipelined too.

    Attributes
    ----------
    index : In, position of a chunk in its row
        In the cycle in which the row is read.
    row : In, ``cols`` sums
        `weft.hw.buffers.operands.ResultBuffer.latency` cycles after ``index``.
    sums : Out, ``lanes`` sums
        `latency` cycles after ``index``.
    """

    @staticmethod
    def latency(registered):
        """Cycles from ``index`` to ``sums``."""
        return ResultBuffer.latency(registered) + 2 * registered

    def __init__(self, *, acc, cols, lanes, registered):
        self.cols = cols
        self.lanes = lanes
        self.registered = registered
        super().__init__({
            "index": In(range(-(-cols // lanes))),
            "row": In(data.ArrayLayout(acc, cols)),
            "sums": Out(data.ArrayLayout(acc, lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        latency = ResultBuffer.latency(self.registered)
        index = pipeline(m, self.index, latency - self.registered, "index")
        for lane in range(min(self.lanes, self.cols)):
            words = [self.row[c] for c in range(lane, self.cols, self.lanes)]
            if self.registered:
                m.d.comb += self.sums[lane].eq(onehot_mux(m, words, index, f"sums_{lane}"))
            else:
                m.d.comb += self.sums[lane].eq(Array(words)[index])
        return m


def look_up(m, results, *, use_table, geometry, write):
    """The table entry of each result, `weft.latencies.TABLE` cycles later; each has a table.

    ``use_table`` is valid with the results. Without it a result is passed.
    """
    latency = OperandBuffer.LATENCY
    use_table = pipeline(m, use_table, latency, "use_table")
    outputs = []
    for n, result in enumerate(results):
        # Wide and a few lines deep: the tool may use distributed RAM.
        m.submodules[f"table_{n}"] = table = OperandBuffer(
            geometry=geometry, write=write.shape(), target="generic"
        )
        m.d.comb += [
            table.write.eq(write), table.read_en.eq(1), table.read_addr.eq(result[:8]),
        ]
        bypass = pipeline(m, result, latency, f"bypass_{n}")
        output = Mux(use_table, table.read_data[0][0], bypass).as_signed()
        outputs.append(pipeline(m, output, 1, f"output_{n}"))
    return outputs
