"""The finisher: turns raw sums into int8 results, column by column as their parameters say."""

from amaranth.hdl import Array, Mux, Signal, signed
from amaranth.lib import data

from weft.commands import Region
from weft.hw.memory.operands import OperandBuffer
from weft.hw.post.pipeline import Pipeline
from weft.hw.post.scale import SCALERS
from weft.hw.post.sums import RowSums

__all__ = ["Finisher", "Parameter"]


class Parameter(data.Struct):
    """What finishes a column; `weft.commands.PARAMETER` is the same in bytes."""

    bias: signed(32)
    multiplier: 32
    shift: signed(8)
    b_zero: signed(8)
    zero: signed(16)
    low: signed(16)
    high: signed(16)


class Finisher(Pipeline):
    """``y = table[clamp(scale(S + bias - b_zero * rowsum(A)) + zero, low, high)]``, in int8.

    A result is in the low byte of its lane.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    mode : str
        One of `weft.hw.post.scale.SCALERS`.
    zero_points : bool
        Whether there is ``b_zero * rowsum(A)``.
    chunk, writes
        As of `Pipeline`: ``a``, ``parameters`` and, where there is a table, ``table``.
    """

    def __init__(self, *, geometries, chunk, mode, zero_points, writes):
        self.geometries = geometries
        self.scaler = SCALERS[mode]
        self.zero_points = zero_points
        self.has_table = "table" in writes
        self.LATENCY = (
            OperandBuffer.LATENCY + 1 + zero_points + self.scaler.LATENCY + 1
            + OperandBuffer.LATENCY * self.has_table
        )
        super().__init__(chunk=chunk, writes=writes)

    def wants(self, chunk):
        return chunk.finish.requantize

    def results(self, m, move, chunks):
        parameter, acc, stage = self._sums(m, move, chunks)
        result, stage = self._scale(m, move, acc, parameter, stage)
        if self.has_table:
            result, stage = self._look_up(m, move, result, chunks, stage)
        assert stage == self.LATENCY
        return result

    def _sums(self, m, move, chunks):
        """Parameters and what is to be scaled, of each lane, and their stage."""
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape()
        )
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.en.eq(move),
            buffer.address.eq(self.i.payload.panel * geometry.page + self.i.payload.chunk),
        ]
        stage = OperandBuffer.LATENCY
        word = data.ArrayLayout(Parameter, self.lanes)(buffer.word.as_value())
        parameter = [Signal(Parameter, name=f"parameter_{n}") for n in range(self.lanes)]
        acc = [Signal(signed(32), name=f"acc_{n}") for n in range(self.lanes)]
        with m.If(move):
            for n in range(self.lanes):
                m.d.sync += parameter[n].eq(word[n])
                m.d.sync += acc[n].eq(chunks[stage].sums[n] + word[n].bias)
        stage += 1
        if not self.zero_points:
            return parameter, acc, stage

        # The sum of the row is there a stage after the chunk entered; it is multiplied by the
        # zero points as the bias is added.
        geometry_a = self.geometries[Region.A]
        m.submodules.rows = rows = RowSums(geometry=geometry_a, write=self.a.shape())
        m.d.comb += [
            rows.write.eq(self.a),
            rows.read.eq(move),
            rows.page.eq(self.i.payload.a_page),
        ]
        row = Signal(signed(32))
        choice = Array(rows.sums[e] for e in range(geometry_a.edge))
        late = [Signal(Parameter, name=f"late_{n}") for n in range(self.lanes)]
        exact = [Signal(signed(32), name=f"exact_{n}") for n in range(self.lanes)]
        with m.If(move):
            m.d.sync += row.eq(choice[chunks[1].row])
            for n in range(self.lanes):
                product = Signal(signed(32), name=f"product_{n}")
                m.d.sync += product.eq(row * word[n].b_zero)
                m.d.sync += [late[n].eq(parameter[n]), exact[n].eq(acc[n] - product)]
        return late, exact, stage + 1

    def _scale(self, m, move, acc, parameter, stage):
        """Scaled, offset and clamped, of each lane, and their stage."""
        latency = self.scaler.LATENCY
        results = []
        for n in range(self.lanes):
            m.submodules[f"scaler_{n}"] = scaler = self.scaler()
            m.d.comb += [
                scaler.en.eq(move),
                scaler.acc.eq(acc[n]),
                scaler.multiplier.eq(parameter[n].multiplier),
                scaler.shift.eq(parameter[n].shift),
            ]
            bounds = data.StructLayout({"zero": signed(9), "low": signed(9), "high": signed(9)})
            here = parameter[n]
            with m.If(move):
                for step in range(latency):
                    following = Signal(bounds, name=f"bounds_{n}_{step}")
                    m.d.sync += [following[name].eq(here[name]) for name in bounds.members]
                    here = following
                y = scaler.y + here.zero
                result = Signal(signed(9), name=f"result_{n}")
                m.d.sync += result.eq(
                    Mux(y < here.low, here.low, Mux(y > here.high, here.high, y))
                )
            results.append(result)
        return results, stage + latency + 1

    def _look_up(self, m, move, results, chunks, stage):
        """Through the table, where the job wants it; a table a lane."""
        found = []
        for n, result in enumerate(results):
            m.submodules[f"table_{n}"] = table = OperandBuffer(
                geometry=self.geometries[Region.TABLE], write=self.table.shape()
            )
            m.d.comb += [
                table.write.eq(self.table), table.en.eq(move), table.address.eq(result[:8]),
            ]
            plain = result
            with m.If(move):
                for step in range(OperandBuffer.LATENCY):
                    late = Signal(signed(9), name=f"plain_{n}_{step}")
                    m.d.sync += late.eq(plain)
                    plain = late
            wanted = chunks[stage + OperandBuffer.LATENCY].finish.table
            found.append(Mux(wanted, table.word[0][0], plain))
        return found, stage + OperandBuffer.LATENCY
