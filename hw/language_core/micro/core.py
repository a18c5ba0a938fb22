"""`MicroLanguageCore`: four columns, a lane, and a microprogram in the main memory."""

from amaranth.hdl import Array, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.utils import ceil_log2

from weft.hw.arith.ice40 import DspAccumulator
from weft.hw.buffers.bank import Bank, SinglePortBank
from weft.hw.delay import pipeline
from weft.hw.language_core.coin import Coin as CoinUnit
from weft.hw.language_core.layouts import LanguagePorts
from weft.hw.language_core.micro.lane import Lane as LaneUnit
from weft.hw.language_core.micro.lane import MicroReductions, Normaliser
from weft.hw.language_core.micro.layouts import InstructionFields, fields_of
from weft.hw.language_core.micro.sequencer import MicroSequencer
from weft.language_core.config import LANES
from weft.language_core.microcode import (
    INSTRUCTION_BITS,
    KIND_BITS,
    LANE_TABLE,
    LANE_VALUE,
    Lane,
    Opcode,
    Product,
    ResultPlace,
    Scalar,
    Setup,
    Shift,
    ValueSource,
)

__all__ = ["MicroLanguageCore"]


class MicroLanguageCore(wiring.Component):
    """The ports of a `weft.hw.language_core.core.LanguageCore`, for a core with a microprogram.

    An instruction is read in each cycle, at the next address of the main memory, and has the
    weights or the addresses that it needs. Nothing waits for anything: the compiler of a model
    knows when a result is there. So all tokens take the same cycles.

    Parameters
    ----------
    config : weft.language_core.config.LanguageCoreConfig
        With ``microprogram``.

    Attributes
    ----------
    as of `weft.hw.language_core.core.LanguageCore`
        An abort takes effect at the next instruction.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(LanguagePorts())

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.sequencer = sequencer = MicroSequencer()
        m.submodules.memory = memory = SinglePortBank(
            width=INSTRUCTION_BITS, depth=config.main_groups, target=config.target
        )
        m.submodules.lane = lane = LaneUnit(target=config.target)
        m.submodules.reductions = reductions = MicroReductions()
        m.submodules.normaliser = normaliser = Normaliser()
        m.submodules.coin = coin = CoinUnit()
        self._outside(m, sequencer, memory, lane)
        word = memory.read_data
        is_kind = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in Opcode}
        for kind, signal in is_kind.items():
            m.d.comb += signal.eq(sequencer.valid & (word[:KIND_BITS] == kind))
        setup = Signal(InstructionFields(Setup))
        with m.If(is_kind[Opcode.SETUP]):
            m.d.sync += setup.eq(word[: InstructionFields(Setup).size])
        values, cached, write = self._memories(m, word)
        sums = self._columns(m, word, is_kind[Opcode.PRODUCT], values, cached)
        scale = Signal(16, reset_less=True)
        self._lane(m, word, sequencer, values, sums, scale, lane)
        valid = self._results(m, setup, is_kind, word, sequencer, lane, reductions, write)
        with m.If(valid & (setup.out_place == ResultPlace.SCALE)):
            m.d.sync += scale.eq(lane.result)
        self._scalars(m, word, is_kind, setup, lane, reductions, normaliser, coin)
        m.d.comb += [
            lane.setup.eq(setup), sequencer.best.eq(reductions.best),
        ]
        return m

    def _outside(self, m, sequencer, memory, lane):
        """The ports of the core, and the memory, which the host has while no text runs."""
        for name in (
            "start", "list", "first_position", "limit", "stop_token", "run_abort",
        ):
            m.d.comb += getattr(sequencer, name).eq(getattr(self, name))
        for name in ("busy", "error", "position", "cycles"):
            m.d.comb += getattr(self, name).eq(getattr(sequencer, name))
        idle = ~sequencer.busy
        m.d.comb += [
            sequencer.prompt.valid.eq(self.prompt_valid),
            self.prompt_ready.eq(sequencer.prompt.ready),
            sequencer.prompt.payload.token.eq(self.prompt_token),
            sequencer.prompt.payload.last.eq(self.prompt_last),
            self.token_valid.eq(sequencer.tokens.valid),
            sequencer.tokens.ready.eq(self.token_ready),
            self.token.eq(sequencer.tokens.payload),
            memory.addr.eq(Mux(idle, self.group, sequencer.group)),
            memory.write_en.eq((self.write & ~self.table & idle).replicate(len(memory.write_en))),
            memory.write_data.eq(self.write_data), self.read_data.eq(memory.read_data),
            sequencer.read_data.eq(memory.read_data),
            lane.table_write.eq(self.write & self.table & idle),
            lane.table_entry.eq(self.group), lane.table_base.eq(self.write_data[:16]),
            lane.table_slope.eq(self.write_data[16:32]),
        ]

    def _memories(self, m, word):
        """The activation memory, twice, for it is read by values and by residuals; and the side
        memory. Returns what an instruction reads, and a dict of their ports for results.
        """
        config, product = self.config, fields_of(Product, word)
        depth = config.groups * LANES
        banks = {
            name: Bank(width=16, depth=depth, target=config.target)
            for name in ("values", "residuals")
        }
        side = Bank(width=32, depth=config.side_groups, target=config.target, bytewise=True)
        m.submodules += [*banks.values(), side]
        values, residuals = banks.values()
        # The field has the same place in a Product and in a Lane.
        m.d.comb += [values.read_addr.eq(product.value), side.read_addr.eq(product.word)]
        write = {
            "address": Signal(11), "data": Signal(16), "values": Signal(), "side": Signal(),
            "residual_address": Signal(ceil_log2(depth)), "residual": residuals.read_data,
        }
        for bank in (values, residuals):
            m.d.comb += [
                bank.write_en.eq(write["values"]), bank.write_addr.eq(write["address"]),
                bank.write_data.eq(write["data"]),
            ]
        m.d.comb += [
            residuals.read_addr.eq(write["residual_address"]),
            side.write_addr.eq(write["address"][2:]),
            side.write_data.eq(write["data"][:8].replicate(4)),
            side.write_en.eq(Mux(write["side"], 1, 0) << write["address"][:2]),
        ]
        return values.read_data.as_signed(), side.read_data, write

    def _columns(self, m, word, valid, values, cached):
        """The sums of four columns."""
        product, early = fields_of(Product, word), Bank.LATENCY
        weights = pipeline(m, product.weights.as_value(), early, "weights")
        is_cached = pipeline(m, product.cached, early, "is_cached")
        chosen = Mux(is_cached, cached, weights)
        late = early + DspAccumulator.LATENCY - 1
        adds = pipeline(m, valid, late, "adds")
        first = pipeline(m, product.first, late, "first")
        sums = []
        for n in range(LANES):
            column = DspAccumulator(a=signed(16), b=signed(8), folded=False)
            m.submodules[f"column_{n}"] = column
            m.d.comb += [
                column.a.eq(values), column.b.eq(chosen[8 * n : 8 * (n + 1)]),
                column.en.eq(adds), column.clear.eq(first),
            ]
            sums.append(column.sum)
        return sums

    def _lane(self, m, word, sequencer, values, sums, scale, lane):
        """The value of the lane, LANE_VALUE cycles after its instruction."""
        fields = fields_of(Lane, word)
        group = Signal(INSTRUCTION_BITS, reset_less=True)
        with m.If(sequencer.loaded):
            m.d.sync += group.eq(word)
        early = LANE_VALUE - 1
        part = pipeline(m, fields.part, early, "part")
        source = pipeline(m, fields.source, early, "source")
        total = Array(sums)[part]
        loaded = group.word_select(part, 16).as_signed()
        other = pipeline(
            m, Mux(source == ValueSource.SUM, total, loaded).as_signed(), 1, "other_value"
        )
        is_value = pipeline(m, source == ValueSource.VALUE, 1, "is_value")
        multiplier = pipeline(m, fields.multiplier, LANE_VALUE, "own_multiplier")
        m.d.comb += [
            lane.value.eq(Mux(is_value, values, other)),
            lane.multiplier.eq(Mux(lane.setup.scaled, scale, multiplier)),
        ]

    def _results(self, m, setup, is_kind, word, sequencer, lane, reductions, write):
        """Where results go, and what is reduced of them; returns whether there is a result."""
        new, begin = fields_of(Setup, word), is_kind[Opcode.SETUP]
        latest = LANE_TABLE - Bank.LATENCY
        ahead = pipeline(m, is_kind[Opcode.LANE], latest, "result_ahead")
        place, count = Signal(11, reset_less=True), Signal(9, reset_less=True)
        position = sequencer.position
        moved = Mux(new.moved == Shift.ROW, position << 4, Mux(
            new.moved == Shift.POSITION, position, 0
        ))
        counts = pipeline(m, ahead, Bank.LATENCY, "result_next")
        valid = pipeline(m, counts, 1, "result_valid")
        with m.If(begin):
            m.d.sync += [place.eq(new.out + moved), count.eq(0)]
        with m.Else():
            with m.If(ahead):
                m.d.sync += place.eq(place + setup.step)
            with m.If(counts):
                m.d.sync += count.eq(count + 1)
        beyond = Signal()
        m.d.comb += beyond.eq(setup.masked & (position < count))
        m.d.comb += [
            write["residual_address"].eq(place),
            write["address"].eq(pipeline(m, place, Bank.LATENCY + 1, "result_place")),
            write["data"].eq(lane.result),
            write["values"].eq(valid & (setup.out_place == ResultPlace.ACTIVATIONS)),
            write["side"].eq(valid & (setup.out_place == ResultPlace.SIDE)),
            lane.residual.eq(write["residual"]), lane.beyond.eq(beyond),
            reductions.kind.eq(setup.reduction), reductions.least.eq(setup.least),
            reductions.start.eq(begin), reductions.starting.eq(new.reduction),
            reductions.valid.eq(valid), reductions.result.eq(lane.result),
            reductions.first.eq(pipeline(m, count == 0, 1, "first_result")),
            reductions.beyond.eq(pipeline(m, beyond, 1, "result_beyond")),
            reductions.index.eq(pipeline(m, count, 1, "result_index")),
        ]
        pivot = Signal(signed(16), reset_less=True)
        with m.If(begin):
            m.d.sync += pivot.eq(reductions.maximum)
        m.d.comb += lane.pivot.eq(pivot)
        return valid

    def _scalars(self, m, word, is_kind, setup, lane, reductions, normaliser, coin):
        """Scales, and the coin of a random choice."""
        fields = fields_of(Scalar, word)
        m.d.comb += [
            normaliser.start.eq(is_kind[Opcode.SCALAR]), normaliser.root.eq(fields.root),
            normaliser.number.eq(Mux(
                fields.root, reductions.squares + fields.addend, reductions.total
            )),
            lane.argument.eq(normaliser.argument), lane.exponent.eq(normaliser.exponent),
            coin.load.eq(pipeline(m, self.start & ~self.busy, 1, "seed_load")),
            coin.seed.eq(self.seed), coin.start.eq(is_kind[Opcode.COIN]),
            coin.total.eq(reductions.total), reductions.mark.eq(coin.mark),
        ]
