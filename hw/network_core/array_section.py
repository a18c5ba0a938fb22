"""The array section: from the operands of a step to the sums of a chunk."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.cells import MACS
from weft.hw.array.edges import Drain, Skew
from weft.hw.array.systolic import SystolicArray
from weft.hw.buffers.bank import LUT_RAM_WORDS
from weft.hw.buffers.operands import ResultBuffer
from weft.hw.delay import pipeline
from weft.hw.network_core.interface import BufferRead, ResultRead
from weft.hw.output.lanes import LaneSelect
from weft.latencies import MEMORY_READ
from weft.network_core.latencies import result_read

__all__ = ["ArraySection"]


class ArraySection(wiring.Component):
    """The systolic array of a network core, with its skews, drain, and result buffer.

    With the option ``two_rows``, rows 2n and 2n + 1 of a tile leave the array together: a row of
    the result buffer has both.

    The vectors of A arrive ``a_latency`` cycles after their step. The address of B is delayed, so
    that its word arrives in the same cycle. The results of a tile are written to the result buffer
    row by row: :meth:`write_latency` cycles after the tile's last step, the first ``row_written``.

    If the MAC cell is corrected, the array has one more column, whose B is 0. Its sums are the
    pair sums of A: ``sum(a[d] * a[d+1])`` over the even d of all steps of a tile. The last
    ``dsp_cols`` columns use DSP blocks, this one first.

    Parameters
    ----------
    config : NetworkCoreConfig
    step : shape
        A struct with the members ``en``, ``clear``, ``capture``, ``drain`` and ``b_addr``.
    a_latency : int
        Cycles from a step to its vectors of A; at least `weft.latencies.MEMORY_READ`.
    buffer_rows : int
        Rows of the result buffer; a power of two.

    Attributes
    ----------
    reset : In, 1 bit
        Clears the control: after FLUSH cycles no step and no sum is in flight. Data have no reset.
    step : In, shape ``step``
    a : In, ``rows`` x ``depth`` int8
    b : Out, `weft.hw.network_core.interface.BufferRead`
        Words of B: ``cols`` x ``depth`` int8.
    results : In, `weft.hw.network_core.interface.ResultRead`
        ``sums`` follow :meth:`latency` cycles after ``address`` and ``index``. ``pair_sum`` is 0 if
        the MAC cell is not corrected.
    """

    @staticmethod
    def latency(config):
        """Cycles from ``address`` to ``sums``."""
        return result_read(config.array)

    @staticmethod
    def write_latency(config, a_latency):
        """Cycles from the last step of a tile to its first ``row_written``."""
        core = config.array
        last_col = core.cols - 1 + MACS[core.mac_cell].CORRECTED
        return ArraySection._drain_delay(config, a_latency) + last_col // core.hop

    @staticmethod
    def _drain_delay(config, a_latency):
        """Cycles from the last step of a tile to the first cycle of its drain."""
        core = config.array
        mac_latency = MACS[core.mac_cell].latency(core.depth)
        result_register = 1
        to_edge = a_latency + core.family.edge_registers
        return to_edge + mac_latency + result_register + (core.rows - 1) // core.hop

    def __init__(self, config, *, step, a_latency, buffer_rows):
        core = config.array
        self.core = core
        self.mac = MACS[core.mac_cell]
        self.a_latency = a_latency
        self.buffer_rows = buffer_rows
        self.drain_delay = self._drain_delay(config, a_latency)
        self.columns = core.cols + self.mac.CORRECTED
        self.chains = config.drained_rows
        self.FLUSH = (core.rows - 1) // core.hop + (self.columns - 1) // core.hop + 2
        vector = data.ArrayLayout(signed(8), core.depth)
        super().__init__({
            "reset": In(1),
            "step": In(step),
            "a": In(data.ArrayLayout(vector, core.rows)),
            "b": Out(BufferRead(step["b_addr"].shape, data.ArrayLayout(vector, core.cols))),
            "results": In(ResultRead(config, buffer_rows)),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.b.address.eq(
            pipeline(m, self.step.b_addr, self.a_latency - MEMORY_READ, "b_addr")
        )
        array = self._array(m)
        self._operands(m, array)
        self._control(m, array)
        self._results(m, array)
        return m

    def _array(self, m):
        """The array and its drain."""
        core = self.core
        m.submodules.array = array = SystolicArray(
            rows=core.rows, cols=self.columns, hop=core.hop,
            mac=lambda col: self.mac(
                depth=core.depth, resource=core.resource(self.columns - 1 - col)
            ),
            chains=self.chains,
        )
        drain = Drain(rows=core.rows, slots=1, delay=self.drain_delay, chains=self.chains)
        m.submodules.drain = ResetInserter(self.reset)(drain)
        m.d.comb += [
            drain.start.eq(self.step.drain),
            array.shift.eq(drain.shift), array.valid.eq(drain.valid),
        ]
        return array

    def _operands(self, m, array):
        """A and B, skewed. Row 0 of a tile is the lowest row of PEs."""
        core = self.core
        row_delays = [p // core.hop for p in reversed(range(core.rows))]
        col_delays = [c // core.hop for c in range(core.cols)]
        for name, words, edge, delays in (
            ("a", self.a, array.a, row_delays), ("b", self.b.data, array.b, col_delays),
        ):
            skew = Skew(
                shape=words.shape().elem_shape,
                delays=[core.family.edge_registers + delay for delay in delays],
            )
            m.submodules[f"skew_{name}"] = skew
            m.d.comb += skew.i.eq(words)
            m.d.comb += [edge[n].eq(skew.o[n]) for n in range(len(delays))]

    def _control(self, m, array):
        """The control bits of the PEs, each in the cycle that the MAC cell requires."""
        mac_latency = self.mac.latency(self.core.depth)
        delays = {"en": 0, "clear": mac_latency - self.mac.SLOTS, "capture": mac_latency}
        to_edge = self.a_latency + self.core.family.edge_registers
        skew = Skew(shape=1, delays=[to_edge + delay for delay in delays.values()])
        m.submodules.pe_control = ResetInserter(self.reset)(skew)
        for n, name in enumerate(delays):
            m.d.comb += [
                skew.i[n].eq(self.step[name]), array.control[name].eq(skew.o[n]),
            ]

    def _results(self, m, array):
        """Array -> result buffer -> the sums of a chunk."""
        core, registered, results = self.core, self.core.family.pipelines_results, self.results
        buffer = ResultBuffer(
            south=array.South, cols=self.chains * self.columns, depth=self.buffer_rows,
            registered=registered, target=core.target, lut_ram=self.buffer_rows <= LUT_RAM_WORDS,
        )
        m.submodules.buffer = ResetInserter(self.reset)(buffer)
        row = buffer.row.as_value()[: core.cols * len(buffer.row[0])]
        wait = result_read(core) - ResultBuffer.latency(registered)
        m.d.comb += [
            buffer.south.eq(array.south),
            buffer.read_addr.eq(results.address),
            results.row_written.eq(buffer.row_written),
        ]
        if self.chains > 1:
            self._pairs(m, buffer, wait)
            return
        if core.lanes == core.cols:  # a chunk is a row
            m.d.comb += results.sums.eq(pipeline(m, row, wait, "sums"))
        else:
            m.submodules.lanes = lanes = LaneSelect(
                acc=self.mac.ACC, cols=core.cols, lanes=core.lanes, registered=registered
            )
            m.d.comb += [
                lanes.index.eq(results.index), lanes.row.eq(row), results.sums.eq(lanes.sums),
            ]
        if self.mac.CORRECTED:
            m.d.comb += results.pair_sum.eq(pipeline(m, buffer.row[core.cols], wait, "pair_sum"))

    def _pairs(self, m, buffer, wait):
        """Both rows of the array in a row of the buffer, or one of them as the first one."""
        core, results = self.core, self.results
        second = pipeline(m, results.index, ResultBuffer.latency(buffer.registered), "second")
        rows = [
            [buffer.row[n * self.columns + c] for c in range(self.columns)]
            for n in range(self.chains)
        ]
        names = ["sums"] + ["pair_sum"] * self.mac.CORRECTED
        parts = slice(None, core.cols), slice(core.cols, None)
        for name, part in zip(names, parts, strict=False):
            first_value, second_value = (Cat(row[part]) for row in rows)
            chosen = Mux(second, second_value, first_value)
            m.d.comb += [
                Value.cast(getattr(results, name)).eq(pipeline(m, chosen, wait, name)),
                Value.cast(getattr(results, f"second_{name}")).eq(
                    pipeline(m, second_value, wait, f"second_{name}")
                ),
            ]
