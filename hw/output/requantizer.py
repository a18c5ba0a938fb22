"""The int8 epilogue: int32 sums to int8 results, by parameters of a column; and the corrector."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft import latencies
from weft.commands import Region
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.delay import MultiCycle, pipeline
from weft.hw.output.lanes import clamp, look_up
from weft.hw.output.operand_sums import PairSums, RowSums
from weft.hw.output.scalers import SCALERS, lane_scaler
from weft.hw.output.stream_packer import ResultPipeline
from weft.latencies import CORRECTION

__all__ = ["Corrector", "Parameter", "Requantizer"]

class Corrector(wiring.Component):
    """``C[i, j] = S[i, j] - (pairs(A, i) + pairs(B, j))``.

    The terms are read while the sums are read from the result buffer.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    lanes : int
    writes : pair of shapes
        The shapes of ``a`` and ``b``.
    target : str
        The target of the Config.

    Attributes
    ----------
    a, b : In, the shapes from ``writes``
        Buffer writes of the loader.
    request : In, ``valid`` and a ``chunk``
        The chunk that is requested in this cycle.
    sums : In, ``lanes`` x 32 bits
        The sums of the chunk, SUMS cycles after the request.
    corrected : Out, ``lanes`` x 32 bits
        LATENCY cycles after the request.
    """

    # Register the chunk; read the terms; add them. Then subtract.
    LATENCY = CORRECTION
    SUMS = LATENCY - 1

    def __init__(self, *, geometries, chunk, lanes, writes, target):
        self.geometries = geometries
        self.writes = writes
        self.target = target
        self.lanes = lanes
        values = data.ArrayLayout(signed(32), lanes)
        super().__init__({
            "a": In(writes[0]),
            "b": In(writes[1]),
            "request": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(values),
            "corrected": Out(values),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.pairs = pairs = PairSums(
            geometries=self.geometries, writes=self.writes, counts=[1, self.lanes],
            target=self.target,
        )
        chunk = Signal.like(self.request.chunk, reset_less=True)
        m.d.sync += chunk.eq(self.request.chunk)
        m.d.comb += [
            pairs.write_0.eq(self.a),
            pairs.write_1.eq(self.b),
            pairs.page_0.eq(chunk.a_page),
            pairs.index_0.eq(chunk.row),
            pairs.page_1.eq(chunk.b_page),
            pairs.index_1.eq(chunk.index),
        ]
        for lane in range(self.lanes):
            correction = Signal(signed(32), name=f"correction_{lane}", reset_less=True)
            m.d.sync += [
                correction.eq(pairs.sums_0[0] + pairs.sums_1[lane]),
                self.corrected[lane].eq(self.sums[lane] - correction),
            ]
        return m


class Parameter(data.Struct):
    """The parameters of a column, in the layout of `weft.dtypes.Int8.parameter`."""

    bias: signed(32)
    multiplier: 32
    shift: signed(8)
    b_zero: signed(8)
    zero: signed(16)
    low: signed(16)
    high: signed(16)


# The parameters that are needed after the scaler.
_BOUNDS = data.StructLayout({"zero": signed(9), "low": signed(9), "high": signed(9)})


class Requantizer(ResultPipeline):
    """``y = table[clamp(scale(S + bias - b_zero * rowsum(A)) + zero, low, high)]``, in int8.

    A result is in the low byte of its lane.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        The memories of the core, by `weft.commands.Region`.
    mode : str
        A key of `weft.hw.output.scalers.SCALERS`.
    cycles : int
        Cycles per sum in each lane. Requests are at least so many cycles apart.
    target : str
        The target of the Config.
    zero_points : bool
        Whether to subtract ``b_zero * rowsum(A)``.
    chunk, acc, lanes, sum_latency, writes
        As for `ResultPipeline`. ``writes`` has ``parameters``, ``a`` if there are zero points, and
        ``table`` if there is a table.
    """

    def __init__(
        self, *, geometries, mode, cycles, target, zero_points, sum_latency, writes, **common
    ):
        self.geometries = geometries
        self.mode = mode
        self.cycles = cycles
        self.target = target
        self.zero_points = zero_points
        self.has_table = "table" in writes
        # The stage in which sums, parameters and row sums meet.
        self.join_stage = latencies.requantizer_join(sum_latency, zero_points)
        self.LATENCY = latencies.requantizer(
            sum_latency, mode=mode, cycles=cycles, zero_points=zero_points, table=self.has_table
        )
        super().__init__(sum_latency=sum_latency, writes=writes, **common)

    def stages(self, m, chunk):
        columns = self._columns(m, chunk)
        sums = self._exact_sums(m, chunk, columns)
        wait = 1 + self.zero_points
        parameters = [
            column.delay(m, wait, f"parameter_{n}") for n, column in enumerate(columns)
        ]
        results, stage = self._scaled(m, parameters, sums, self.join_stage + wait)
        if self.has_table:
            use_table = pipeline(m, self.request.chunk.epilogue.table, stage, "use_table_0")
            results = look_up(
                m, results, use_table=use_table, geometry=self.geometries[Region.TABLE],
                write=self.table,
            )
            stage += latencies.TABLE
        assert stage == self.LATENCY
        for lane, result in enumerate(results):
            m.d.comb += self.results[lane].eq(result)

    def _columns(self, m, chunk):
        """The parameters of each lane, at the join stage, as `MultiCycle` values."""
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape(), target=self.target
        )
        address = (chunk.b_panel * geometry.page + chunk.index)[: len(buffer.read_addr)]
        # A chunk, and all that belongs to it, is stable until the next request.
        address = MultiCycle(address, self.cycles).delay(
            m, self.join_stage - 2 - OperandBuffer.LATENCY, "address"
        )
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.read_en.eq(1),
            buffer.read_addr.eq(address.value),
        ]
        word = MultiCycle(buffer.read_data.as_value(), address.cycles).delay(m, 1, "word")
        columns = data.ArrayLayout(Parameter, self.lanes)(word.value)
        return [MultiCycle(columns[n], word.cycles) for n in range(self.lanes)]

    def _exact_sums(self, m, chunk, columns):
        """``S + bias - b_zero * rowsum(A)`` of each lane, 1 or 2 cycles after the join stage."""
        sums = []
        for n, column in enumerate(columns):
            value = pipeline(m, self.sums[n], self.join_stage - self.sum_latency, f"sums_{n}")
            biased = Signal(signed(32), name=f"biased_{n}", reset_less=True)
            m.d.sync += biased.eq(value + column.value.bias)
            sums.append(biased)
        if not self.zero_points:
            return sums

        # The zero point is multiplied by the row sum while the bias is added.
        m.submodules.rows = rows = RowSums(
            geometries=[self.geometries[Region.A]], writes=[self.a.shape()], counts=[1],
            target=self.target,
        )
        m.d.comb += [
            rows.write_0.eq(self.a), rows.page_0.eq(chunk.a_page), rows.index_0.eq(chunk.row),
        ]
        row_sum = pipeline(m, rows.sums_0[0], self.join_stage - 1 - RowSums.READ, "row_sum")
        exact = []
        for n, column in enumerate(columns):
            product = Signal(signed(32), name=f"product_{n}", reset_less=True)
            exact.append(Signal(signed(32), name=f"exact_{n}", reset_less=True))
            m.d.sync += [
                product.eq(row_sum * column.value.b_zero), exact[n].eq(sums[n] - product),
            ]
        return exact

    def _scaled(self, m, parameters, sums, stage):
        """Scaled, offset and clamped sums of each lane, and their stage."""
        start = Signal(stage)
        m.d.sync += start.eq(
            start << 1 | (self.request.valid & self.request.chunk.uses_epilogue)
        )
        results = []
        for n, (column, value) in enumerate(zip(parameters, sums, strict=True)):
            scaler = lane_scaler(
                m, n, mode=self.mode, cycles=self.cycles, target=self.target, start=start[-1],
                acc=value, parameters=column, extra=_BOUNDS,
            )
            bounds = MultiCycle(scaler.o_extra, scaler.o_stable)
            results.append(self._clamped(m, n, scaler.y, bounds))
        return results, stage + SCALERS[self.mode].latency(self.cycles) + latencies.CLAMP

    def _clamped(self, m, n, y, bounds):
        """``clamp(y + zero, low, high)`` of lane ``n``, CLAMP cycles later."""
        zero, low, high = (
            MultiCycle(bounds.value[name], bounds.cycles).delay(m, wait, f"{name}_{n}").value
            for name, wait in (("zero", 2), ("low", 3), ("high", 3))
        )
        return clamp(m, y, zero=zero, low=low, high=high, name=n)
