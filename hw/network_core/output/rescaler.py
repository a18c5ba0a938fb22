"""The rescaler: turns sums of chunks into int8 results; ADD adds or multiplies a chunk of a map."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import MultiCycle, pipeline
from weft.hw.fabrics import FABRICS
from weft.hw.network_core.interface import JobPort, LineRead, ScalePort, TableRead
from weft.hw.network_core.layouts import ColumnParameters, MapChunk, is_of_unit
from weft.hw.output.lanes import clamp
from weft.hw.output.scalers import lane_scaler
from weft.hw.output.serial_scaler import SerialScaler
from weft.latencies import CLAMP, MEMORY_READ
from weft.network_core import latencies
from weft.network_core.config import FACTOR_BITS, MOST_DIGITS
from weft.network_core.latencies import add_slot

__all__ = ["Issue", "IssueSlots", "Rescaler"]


class Issue(data.Struct):
    """The values that the scalers take in a slot; at most one bit is 1.

    ========= =====================================================================================
    ``layer`` the sums of a chunk
    ``total`` the scaled results of the layer for that chunk, and its scaled added values
    ========= =====================================================================================
    """

    layer: 1
    total: 1


class IssueSlots(wiring.Component):
    """Assigns slots of ``scale_cycles`` cycles to the values of chunks.

    Chunks are at least a slot apart, or four slots in a job with sums. With ADD they are a multiple
    of two slots apart while there are chunks in flight. The total of a chunk follows its sums by
    `weft.network_core.latencies.add_slot` slots, an odd number.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    start : In, 1 bit
        Pulse: a job starts. No chunk is in flight.
    add : In, 1 bit
        The job has ADD.
    sums : In, 1 bit
        The job stores sums. Stable from the cycle after ``start``, as is ``add``.
    request : In, 1 bit
        A chunk is requested; only while ``ready`` is 1.
    ready : Out, 1 bit
        A chunk can be requested.
    issue : Out, `Issue`
        In the first cycle of a slot.
    """

    def __init__(self, config):
        self.cycles = config.array.scale_cycles
        self.total_slot = add_slot(config)
        super().__init__({
            "start": In(1), "add": In(1), "sums": In(1), "request": In(1), "ready": Out(1),
            "issue": Out(Issue),
        })

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(range(4 * self.cycles))
        last = Signal.like(cycle, init=self.cycles - 1)  # cycle of a period
        requested = Signal()  # a chunk was requested in this period; 0 when a job starts
        before = Signal(self.total_slot // 2)  # the same for the periods before
        slots = Mux(self.sums, 4, Mux(self.add, 2, 1))  # of a period, the time of a chunk
        m.d.sync += last.eq(slots * self.cycles - 1)
        end = cycle == last
        m.d.comb += [
            self.ready.eq(cycle == 0),
            self.issue.layer.eq(self.request),
            self.issue.total.eq(before[-1] & (cycle == self.cycles)),
        ]
        with m.If(self.request | (cycle != 0) | requested | before.any()):
            m.d.sync += cycle.eq(Mux(end, 0, cycle + 1))
            with m.If(self.add):
                m.d.sync += requested.eq((requested | self.request) & ~end)
        with m.If(end):
            m.d.sync += before.eq(Cat(requested, before))
        with m.If(self.start):
            m.d.sync += [cycle.eq(0), before.eq(0)]
        return m


class Rescaler(wiring.Component):
    """``y = clamp(scale(sums + bias) + zero, low, high)``, for each lane.

    With ADD the same scalers compute one more value, and z is the result. The ADD table has the
    scaled values of all bytes::

        z  = clamp(scale(table[x] + table[256 + y]) + sum_zero, sum_low, sum_high)

    If the job multiplies, the total is the product of both words, as signed values of
    `weft.network_core.config.FACTOR_BITS` bits, instead of their sum. Sums are modulo 2^32.

    With the option ``int16``, neighbouring lanes may have the digits of a sum. A stage before the
    scalers adds them: ``pairs``, ``quads``, ``quad_pairs`` and ``words`` of
    `weft.network_core.descriptors.ListJob`. Two or four lanes may have the bytes of the scaled
    value; a stage behind the scalers finds whether it leaves its limits of 16 bits.

    Both values of a chunk take the same path: `IssueSlots` gives each one its slot, in which its
    parameters are read. So the results of a chunk follow its request by a fixed number of cycles:
    `weft.network_core.latencies.rescale`, or `rescale_total`. A job with sums needs only ``sums +
    bias``.

    With the option ``two_rows`` there are as many lanes for the next pixel, which compute the
    results of the layer alone.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
    ready : Out, 1 bit
        A chunk can be requested.
    request : In, ``valid`` and a `weft.hw.network_core.layouts.MapChunk`
        The chunk that is requested in this cycle; only while ``ready`` is 1.
    sums : In, ``lanes`` x 32 bits
    pair_sum : In, 32 bits
        The pair sum of the row. Both are valid `weft.network_core.latencies.join` cycles after the
        request, less 1 if the MAC cell is corrected.
    second_sums, second_pair_sum : In; only with the option ``two_rows``
        Of the next pixel.
    lines : Out, `weft.hw.network_core.interface.LineRead`
    table : Out, `weft.hw.network_core.interface.TableRead`
    added : In, stream of ``lanes`` int8
        Values of x, chunk by chunk. A valid chunk is taken when the scalers need it.
    scale : In, `weft.hw.network_core.interface.ScalePort`; only with ``softmax`` or ``lstm``
        It has the scaler of lane 0 in a job with one of these flags.
    results : Out, ``lanes`` int8
    second_results : Out, ``lanes`` int8; only with the option ``two_rows``
    results_next : Out, 1 bit
        ``results`` is valid in `NEXT` cycles. 0 in a job with sums.
    biased : Out, ``lanes`` x 32 bits
        ``sums + bias``.
    biased_next : Out, 1 bit
        ``biased`` has the sums of a chunk in the next cycle. 0 in a job without sums.
    """

    NEXT = latencies.CHUNK_STORE
    HOLDS_MULTIPLIER = True  # as of a serial scaler

    def __init__(self, config):
        self.config = config
        core = self.core = config.array
        self.join = latencies.join(core)
        self.lanes = core.lanes
        values = data.ArrayLayout(signed(8), core.lanes)
        super().__init__({
            "job": In(JobPort(config)),
            "ready": Out(1),
            "request": In(data.StructLayout({"valid": 1, "chunk": MapChunk(config)})),
            "sums": In(data.ArrayLayout(signed(32), core.lanes)),
            "pair_sum": In(signed(32)),
            "lines": Out(LineRead(config)),
            "table": Out(TableRead(config)),
            "added": In(stream.Signature(values)),
            **({"scale": In(ScalePort())} if config.has_units else {}),
            "results": Out(values),
            "results_next": Out(1),
            "biased": Out(data.ArrayLayout(signed(32), core.lanes)),
            "biased_next": Out(1),
            **({
                "second_sums": In(data.ArrayLayout(signed(32), core.lanes)),
                "second_pair_sum": In(signed(32)), "second_results": Out(values),
            } if config.two_rows else {}),
        })

    def elaborate(self, platform):
        m = Module()
        issues = self._issues(m)
        parameters, limits = self._parameters(m, issues[0]), self._limits(m, issues)
        biased = [
            Signal(signed(32), name=f"biased_{lane}", reset_less=True) for lane in range(self.lanes)
        ]
        scaled = [Signal(signed(32), name=f"scaled_{lane}") for lane in range(self.lanes)]
        limited = [Signal(signed(16), name=f"limited_{lane}") for lane in range(self.lanes)]
        for lane in range(self.lanes):
            self._lane(m, lane, parameters[lane], limits, issues, biased, (scaled, limited))
            if self.config.two_rows:
                self._second_lane(m, lane, parameters[lane], limits, issues)
        end = issues[latencies.rescale(self.config) - 1 - self.NEXT]
        m.d.comb += self.added.ready.eq(
            issues[latencies.added_take(self.config)].layer & self.job.fields.add
        )
        m.d.sync += [
            self.results_next.eq(Mux(self.job.fields.add, end.total, end.layer)),
            self.biased_next.eq(issues[self.join - 1].layer & self.job.fields.sums),
        ]
        return m

    def _issues(self, m):
        """What was issued 0, 1, 2, ... cycles ago."""
        m.submodules.slots = slots = IssueSlots(self.config)
        m.d.comb += [
            slots.start.eq(self.job.start),
            slots.add.eq(self.job.fields.add),
            slots.sums.eq(self.job.fields.sums),
            slots.request.eq(self.request.valid),
            self.ready.eq(slots.ready),
        ]
        issues = [slots.issue]
        for cycle in range(latencies.total_latency(self.config) - 1):
            issues.append(Signal(Issue, name=f"issue_{cycle + 1}"))
            m.d.sync += issues[-1].eq(issues[-2])
            if cycle == self.join:  # the next job may start before sums would be scaled
                m.d.sync += issues[-1].layer.eq(issues[-2].layer & ~self.job.fields.sums)
        return issues

    def _parameters(self, m, issue):
        """The parameters of all lanes, at the join stage, as `MultiCycle` values."""
        cycles = self.core.scale_cycles
        with m.If(issue.as_value().any()):
            m.d.sync += self.lines.address.eq(
                Mux(issue.layer, self.request.chunk.line, self.job.fields.add_line)
            )
        # The address is stable until the next issue.
        word = MultiCycle(self.lines.data.as_value(), cycles).delay(
            m, self.join - 1 - MEMORY_READ, "word"
        )
        columns = data.ArrayLayout(ColumnParameters, self.lanes)(word.value)
        return [MultiCycle(columns[lane], word.cycles) for lane in range(self.lanes)]

    def _limits(self, m, issues):
        """The zero point and the limits of the value that is clamped, by name."""
        job, found = self.job.fields, {}
        scaled = latencies.rescale(self.config) - CLAMP
        for name, stage in (("zero", scaled + 2), ("low", scaled + 3), ("high", scaled + 3)):
            value = Mux(issues[stage - 1].total, job[f"sum_{name}"], job[name])
            found[name] = pipeline(m, value, 1, name)
        return found

    def _lane(self, m, lane, column, limits, issues, biased_lanes, wide_lanes):
        """All stages of one lane; ``biased_lanes``, ``wide_lanes`` : values of all lanes."""
        sums = self._corrected(m, lane, self.sums[lane], self.pair_sum)
        biased = acc = biased_lanes[lane]
        if self.config.int16:
            acc = self._joined(m, lane, biased_lanes)
        scaler = self._scaler(m, lane, acc, column, issues)
        if self.config.has_units and lane == 0:
            m.d.comb += self.scale.y.eq(scaler.y)
        y = scaler.y
        if self.config.int16:
            y = self._byte(m, lane, y, *wide_lanes)
        y = clamp(m, y, **limits, name=lane)[:8].as_signed()
        value = Mux(
            issues[self.join].layer, sums.as_signed(), self._total(m, lane, y, issues)
        )
        self._bias(m, biased, value, column, issues)
        m.d.comb += [self.results[lane].eq(y), self.biased[lane].eq(biased)]

    def _second_lane(self, m, lane, column, limits, issues):
        """All stages of the lane of the same column of the next pixel."""
        name = self.lanes + lane
        sums = self._corrected(m, name, self.second_sums[lane], self.second_pair_sum)
        biased = Signal(signed(32), name=f"biased_{name}", reset_less=True)
        self._bias(m, biased, sums.as_signed(), column, issues)
        scaler = self._scaler(m, name, biased, column, issues)
        m.d.comb += self.second_results[lane].eq(clamp(m, scaler.y, **limits, name=name)[:8])

    def _corrected(self, m, lane, sums, pair_sum):
        """The sums without the pair sum of their row, registered, if the MAC cell is corrected."""
        if not self.core.cell.corrected:
            return sums
        return pipeline(m, (sums - pair_sum)[:32], 1, f"corrected_{lane}")

    def _bias(self, m, biased, value, column, issues):
        """Add the bias. A serial scaler needs the sum until the next slot."""
        serial = latencies.has_serial_scaler(self.core)
        with m.If(issues[self.join].as_value().any() if serial else 1):
            m.d.sync += biased.eq(value + column.value.bias)

    def _joined(self, m, lane, biased):
        """The sum of a lane and of the lanes before it, if they have digits of it, registered."""
        fields = self.job.fields
        joined = Signal(signed(32), name=f"joined_{lane}", reset_less=True)
        ends_quad = lane % MOST_DIGITS == MOST_DIGITS - 1

        def pair(last, holds):
            low, high = biased[last], biased[last - 1][:24]
            return low + Mux(holds, Cat(Const(0, 8), high), 0)

        total, pairs = biased[lane], fields.pairs | fields.quad_pairs
        if ends_quad:
            quads = fields.quads | fields.quad_pairs | fields.words
            upper = Cat(Const(0, 16), pair(lane - 2, Const(1))[:16])
            total = pair(lane, pairs | quads) + Mux(quads, upper, 0)
        elif lane % 2:
            total = pair(lane, pairs)
        m.d.sync += joined.eq(total)
        return joined

    def _byte(self, m, lane, y, scaled, limited):
        """What a lane clamps to 8 bits, a cycle after ``y``: with digits a byte of their result.

        ``scaled`` and ``limited`` have the results of all lanes, ``limited`` those of 16 bits.
        """
        fields = self.job.fields
        pairs, place = fields.pairs | fields.quad_pairs, lane % MOST_DIGITS

        def low_byte(value, first):
            """Eight bits, less 128."""
            return Cat(value[first : first + 7], ~value[first + 7]).as_signed()

        own = scaled[lane]
        m.d.comb += own.eq(pipeline(m, y, 1, f"y_scaled_{lane}"))
        if lane % 2:
            is_low, is_high = (
                pipeline(m, difference[-1], 1, f"is_{name}_{lane}") for name, difference in (
                    ("below", y - fields.pair_low), ("above", fields.pair_high - y),
                )
            )
            value = limited[lane]
            m.d.comb += value.eq(
                Mux(is_low, fields.pair_low, Mux(is_high, fields.pair_high, own))
            )
            byte = low_byte(value, 0)
        else:
            byte = limited[lane + 1] >> 8
        word, last = scaled[lane - place + MOST_DIGITS - 1], 8 * (MOST_DIGITS - 1)
        of_word = low_byte(word, last - 8 * place) if place else word >> last
        return Mux(fields.words, of_word, Mux(pairs, byte, own))

    def _scaler(self, m, lane, acc, column, issues):
        """The scaler of a lane."""
        serial = latencies.has_serial_scaler(self.core)
        make = self._serial_scaler if serial else self._parallel_scaler
        return make(m, lane, acc, column, issues)

    def _parallel_scaler(self, m, lane, acc, column, issues):
        """A scaler that takes the sum a cycle after it met its parameters, or two."""
        core, wait = self.core, 1 + self.config.int16
        start, acc, parameters = self._shared(
            m, lane, issues[self.join + wait].as_value().any(), acc,
            column.delay(m, wait, f"parameter_{lane}"),
        )
        return lane_scaler(
            m, lane, mode=core.requantize, cycles=core.scale_cycles, target=core.target,
            start=start, acc=acc, parameters=parameters,
        )

    def _serial_scaler(self, m, lane, biased, column, issues):
        """A scaler that starts when the sum meets its parameters."""
        # An UltraPlus has few cells, and a slow clock.
        m.submodules[f"scaler_{lane}"] = scaler = SerialScaler(
            cycles=self.core.scale_cycles, short_chains=not self.core.family.has_dsp,
            holds_multiplier=self.HOLDS_MULTIPLIER,
        )
        start, acc, parameters = self._shared(
            m, lane, issues[self.join].as_value().any(), biased, column
        )
        m.d.comb += [
            scaler.start.eq(start), scaler.acc.eq(acc),
            scaler.multiplier.eq(parameters.value.multiplier),
            scaler.shift.eq(parameters.value.shift),
        ]
        return scaler

    def _shared(self, m, lane, start, acc, parameters):
        """The inputs of the scaler of a lane: those of the lane, or those of ``scale``."""
        if lane or not self.config.has_units:
            return start, acc, parameters
        shared, inputs = Signal(ColumnParameters), Signal(signed(32), name="shared_acc")
        m.d.comb += [shared.eq(parameters.value), inputs.eq(acc)]
        with m.If(is_of_unit(self.config, self.job.fields)):
            m.d.comb += [
                shared.multiplier.eq(self.scale.multiplier), shared.shift.eq(self.scale.shift),
                inputs.eq(self.scale.acc),
            ]
        return start | self.scale.start, inputs, MultiCycle(shared, parameters.cycles)

    def _total(self, m, lane, y, issues):
        """The sum or the product of both values of the table, until the next chunk has one."""
        found = self._read_table(m, lane, y, issues)
        result_value, total = (
            Signal(signed(32), name=f"{name}_{lane}", reset_less=True)
            for name in ("result_value", "total")
        )
        m.d.sync += result_value.eq(found)
        values = result_value, found
        if self.config.multiply_maps:  # the sum is as late as the product
            values = pipeline(m, result_value, 1, f"sum_value_{lane}"), result_value
        with m.If(issues[latencies.total_latency(self.config) - 1].layer):
            m.d.sync += total.eq(values[0] + values[1])
        if not self.config.multiply_maps:
            return total
        # One of them is 0. An OR joins them in the LUTs that choose between sums and total.
        with m.If(self.job.fields.multiply):
            m.d.sync += total.eq(0)
        return total | self._product(m, lane, result_value, found, issues)

    def _read_table(self, m, lane, y, issues):
        """The value of the result of a chunk, and a cycle later the one of its added value."""
        table = self.table
        address = Signal.like(table.address[lane], reset_less=True)
        m.d.comb += table.address[lane].eq(address)
        with m.If(issues[latencies.rescale(self.config)].layer):
            m.d.sync += address.eq(Cat(y, 1))
        with m.Else():
            m.d.sync += address.eq(self.added.payload[lane].as_unsigned())
        return table.data[lane]

    def _product(self, m, lane, a, b, issues):
        """The product of both values of the table when the scalers take it; 0 with a sum."""
        a, b = (value[:FACTOR_BITS].as_signed() for value in (a, b))
        cell = FABRICS[self.core.target].multiplier(a=a.shape(), b=b.shape(), pipelined=False)
        m.submodules[f"product_{lane}"] = cell
        # A step takes the factors; the next one, at the latest for the next factors, their product.
        factors = issues[latencies.total_latency(self.config) - latencies.MAP_PRODUCT].layer
        m.d.comb += [
            cell.a.eq(a), cell.b.eq(b), cell.zero.eq(~self.job.fields.multiply),
            cell.en.eq(factors | issues[self.join - 1].total),
        ]
        return cell.product
