"""The finisher: turns raw sums into int8 results, column by column as their parameters say."""

from amaranth.hdl import Mux, Signal, signed
from amaranth.lib import data

from weft.commands import Region
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.delay import MultiCycle, pipeline
from weft.hw.output.operand_sums import RowSums
from weft.hw.output.result_pipeline import ResultPipeline
from weft.hw.output.scalers import SCALERS

__all__ = ["Parameter", "Requantizer"]


class Parameter(data.Struct):
    """What finishes a column; `weft.commands.PARAMETER` is the same in bytes."""

    bias: signed(32)
    multiplier: 32
    shift: signed(8)
    b_zero: signed(8)
    zero: signed(16)
    low: signed(16)
    high: signed(16)


# What a result is held between, and how far beyond that a scaled sum is still told apart.
_BOUNDS = data.StructLayout({"zero": signed(9), "low": signed(9), "high": signed(9)})
_FAR = 11


class Requantizer(ResultPipeline):
    """``y = table[clamp(scale(S + bias - b_zero * rowsum(A)) + zero, low, high)]``, in int8.

    A result is in the low byte of its lane.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    mode : str
        One of `weft.hw.output.scalers.SCALERS`.
    cycles : int
        That a lane takes to scale a sum: chunks are so many cycles apart.
    target : str
        That of a Config.
    zero_points : bool
        Whether there is ``b_zero * rowsum(A)``.
    chunk, acc, lanes, raw, writes
        As of `ResultPipeline`: ``parameters``; ``a`` with zero points; ``table`` if there is one.
    """

    def __init__(
        self, *, geometries, mode, cycles, target, zero_points, raw, writes, **common
    ):
        self.geometries = geometries
        self.scaler = SCALERS[mode]
        self.cycles = cycles
        self.target = target
        self.zero_points = zero_points
        self.has_table = "table" in writes
        # Parameters, and sums of rows, come when the sums are there, or these wait.
        self.met = max(raw, 2 + OperandBuffer.LATENCY, (1 + RowSums.READ) * zero_points)
        self.LATENCY = (
            self.met + 1 + zero_points + self.scaler.latency(cycles) + 5
            + (OperandBuffer.LATENCY + 1) * self.has_table
        )
        super().__init__(raw=raw, writes=writes, **common)

    def stages(self, m, asked):
        parameter, acc, stage = self._sums(m, asked)
        results, stage = self._scale(m, acc, parameter, stage)
        if self.has_table:
            results, stage = self._look_up(m, results, asked, stage)
        assert stage == self.LATENCY
        for lane, result in enumerate(results):
            m.d.comb += self.results[lane].eq(result)

    def _sums(self, m, asked):
        """Parameters and what is to be scaled, of each lane, and their stage."""
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape(), target=self.target
        )
        address = (asked.panel * geometry.page + asked.chunk)[: len(buffer.read_addr)]
        # Chunks, and so what belongs to them, stay for as many cycles as they are apart.
        address = MultiCycle(address, self.cycles).later(
            m, self.met - 2 - OperandBuffer.LATENCY, "address"
        )
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.read_en.eq(1),
            buffer.read_addr.eq(address.value),
        ]
        words = MultiCycle(buffer.read_data.as_value(), address.cycles).later(m, 1, "word")
        word = data.ArrayLayout(Parameter, self.lanes)(words.value)
        parameter, acc = [], []
        for n in range(self.lanes):
            parameter.append(MultiCycle(word[n], words.cycles).later(m, 1, f"parameter_{n}"))
            sums = pipeline(m, self.sums[n], self.met - self.raw, f"sums_{n}")
            total = Signal(signed(32), name=f"acc_{n}", reset_less=True)
            m.d.sync += total.eq(sums + word[n].bias)
            acc.append(total)
        if not self.zero_points:
            return parameter, acc, self.met + 1

        # The sum of the row is multiplied by the zero points as the bias is added.
        m.submodules.rows = rows = RowSums(
            geometries=[self.geometries[Region.A]], writes=[self.a.shape()], counts=[1],
            target=self.target,
        )
        m.d.comb += [
            rows.write_0.eq(self.a), rows.page_0.eq(asked.a_page), rows.index_0.eq(asked.row),
        ]
        row = pipeline(m, rows.sums_0[0], self.met - 1 - RowSums.READ, "row")
        late = [one.later(m, 1, f"late_{n}") for n, one in enumerate(parameter)]
        exact = []
        for n in range(self.lanes):
            product = Signal(signed(32), name=f"product_{n}", reset_less=True)
            exact.append(Signal(signed(32), name=f"exact_{n}", reset_less=True))
            m.d.sync += [product.eq(row * word[n].b_zero), exact[n].eq(acc[n] - product)]
        return late, exact, self.met + 2

    def _scale(self, m, acc, parameter, stage):
        """Scaled, offset and clamped, of each lane, and their stage."""
        start = Signal(stage)
        m.d.sync += start.eq(start << 1 | (self.chunks.valid & self.chunks.chunk.finishes))
        results = []
        for n in range(self.lanes):
            given = parameter[n].value
            m.submodules[f"scaler_{n}"] = scaler = self.scaler(
                cycles=self.cycles, target=self.target, rest=_BOUNDS, stays=parameter[n].cycles
            )
            m.d.comb += [
                scaler.start.eq(start[-1]),
                scaler.acc.eq(acc[n]),
                scaler.multiplier.eq(given.multiplier),
                scaler.shift.eq(given.shift),
                *(scaler.rest[name].eq(given[name]) for name in _BOUNDS.members),
            ]
            # Beyond all limits it does not matter how far.
            ones, any_one = scaler.y[_FAR - 1 :].all(), scaler.y[_FAR - 1 :].any()
            most = (1 << _FAR - 1) - 1
            near = pipeline(m, ones, 1, f"ones_{n}") | ~pipeline(m, any_one, 1, f"any_one_{n}")
            y = pipeline(m, scaler.y, 1, f"y_{n}")
            y = Mux(near, y[:_FAR].as_signed(), Mux(y[-1], -most - 1, most))
            y = pipeline(m, y, 1, f"limited_{n}")
            zero, low, high = (
                MultiCycle(scaler.late[name], scaler.lasts).later(m, wait, f"{name}_{n}").value
                for name, wait in (("zero", 2), ("low", 3), ("high", 3))
            )
            y = pipeline(m, y + zero, 1, f"offset_{n}")
            is_low = pipeline(m, (y - low)[-1], 1, f"is_low_{n}")
            is_high = pipeline(m, (high - y)[-1], 1, f"is_high_{n}")
            y, low, high = (
                pipeline(m, value, 1, f"{name}_late_{n}")
                for name, value in (("held", y[:9]), ("low", low), ("high", high))
            )
            held = Mux(is_low, low, Mux(is_high, high, y.as_signed()))
            results.append(pipeline(m, held, 1, f"result_{n}"))
        return results, stage + self.scaler.latency(self.cycles) + 5

    def _look_up(self, m, results, asked, stage):
        """Through the table, where the job wants it; a table a lane."""
        found, latency = [], OperandBuffer.LATENCY
        wanted = pipeline(m, self.chunks.chunk.finish.table, stage + latency, "wanted")
        for n, result in enumerate(results):
            m.submodules[f"table_{n}"] = table = OperandBuffer(
                geometry=self.geometries[Region.TABLE], write=self.table.shape()
            )
            m.d.comb += [
                table.write.eq(self.table), table.read_en.eq(1), table.read_addr.eq(result[:8]),
            ]
            plain = pipeline(m, result, latency, f"plain_{n}")
            result = Mux(wanted, table.read_data[0][0], plain).as_signed()
            found.append(pipeline(m, result, 1, f"found_{n}"))
        return found, stage + latency + 1
