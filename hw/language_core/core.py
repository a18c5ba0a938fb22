"""`LanguageCore`: one row of the array, the lanes after it, their memories and their control."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.delay import pipeline
from weft.hw.dma.axi import Axi4
from weft.hw.language_core.coin import Coin
from weft.hw.language_core.control import PassControl
from weft.hw.language_core.lanes import Lanes
from weft.hw.language_core.layouts import GROUP_LEVELS, GroupJob, LanguagePorts
from weft.hw.language_core.loops import LoopNest
from weft.hw.language_core.memory import MainMemory
from weft.hw.language_core.micro.core import MicroLanguageCore
from weft.hw.language_core.products import ProductColumns
from weft.hw.language_core.reductions import Reductions
from weft.hw.language_core.scales import Scales
from weft.hw.language_core.transfers import WordTransfers
from weft.language_core.config import (
    BEAT_BYTES,
    COLUMNS,
    DEPTH,
    GROUP_BYTES,
    GROUPS_OF_WORD,
    LANES,
    WORD_BEATS,
    WORD_BYTES,
)
from weft.language_core.descriptors import (
    LEVELS,
    Kind,
    OutPlace,
    ParameterPlace,
    Reduction,
    Source,
    Transfer,
)
from weft.language_core.latencies import (
    GROUP_OF_PRODUCT,
    GROUP_OF_VALUE,
    PARAMETER_ISSUE,
    PORT_B,
    READ,
    RING_WORDS,
)

__all__ = ["LanguageCore", "language_core"]

_HALF = DEPTH // 2


def language_core(config):
    """Return the core of ``config``: with a microprogram, or with a list of passes."""
    return (MicroLanguageCore if config.microprogram else LanguageCore)(config)


class LanguageCore(wiring.Component):
    """A whole language model: tokens of a prompt in, tokens out.

    A step of a product reads a word of the main memory: 16 weights, keys or values for each of
    eight columns. There is no operand buffer. Sums, or values of the activation memory, pass the
    lanes in groups of four. The list says when a pass starts, so the cycles of a token
    depend on its position alone: `weft.language_core.cycles`. With a program memory they also
    depend on that memory.

    Parameters
    ----------
    config : weft.language_core.config.LanguageCoreConfig

    Attributes
    ----------
    write : In, 1 bit
        Pulse of the host, while the core is not busy: ``write_data`` goes to a group of the main
        memory, or with ``table`` to an entry of the tables: the base and the slope are its lowest
        and its second 16 bits.
    table : In, 1 bit
    group : In, 16 bits
        Of the main memory, or the number of the entry.
    write_data : In, 64 bits
    read_data : Out, 64 bits
        The group of the main memory, SELECTED cycles after ``group``, while the core is not busy.
    start, list, first_position, limit, stop_token, run_abort, busy, error, position, cycles
        As of `weft.hw.language_core.control.PassControl`.
    seed : In, 32 bits
        In the cycle after ``start``: the state of the register of random numbers, not 0. A list
        that takes the most probable token does not use it.
    prompt_valid, prompt_ready, prompt_token, prompt_last : In, Out, In, In
        The stream of the prompt.
    token_valid, token_ready, token : Out, In, Out
        The stream of the emitted tokens, 16 bits each.
    memory : Out, `weft.hw.dma.axi.Axi4`; only with a program memory
        To this memory.
    """

    def __init__(self, config):
        self.config = config
        memory = {"memory": Out(Axi4(data_bytes=BEAT_BYTES))} if config.program_words else {}
        super().__init__({**LanguagePorts().members, **memory})

    def elaborate(self, platform):
        m = Module()
        config, target = self.config, self.config.target
        m.submodules.control = control = PassControl(
            transfers=config.program_words > 0, int4=config.int4
        )
        m.submodules.memory = memory = MainMemory(
            width=8 * WORD_BYTES, words=config.words, target=target,
            parts=WORD_BEATS if config.program_words else 0,
        )
        m.submodules.activations = activations = Bank(
            width=16 * DEPTH, depth=config.vectors, target=target, bytewise=True
        )
        m.submodules.side = side = Bank(width=16 * LANES, depth=config.side_groups, target=target)
        m.submodules.lanes = lanes = Lanes(target=target)
        m.submodules.reductions = reductions = Reductions(target=target)
        m.submodules.scales = scales = Scales(target=target)
        m.submodules.coin = coin = Coin()
        for name in (
            "start", "list", "first_position", "limit", "stop_token", "run_abort",
        ):
            m.d.comb += getattr(control, name).eq(getattr(self, name))
        for name in ("busy", "error", "position", "cycles"):
            m.d.comb += getattr(self, name).eq(getattr(control, name))
        m.d.comb += [
            control.prompt.valid.eq(self.prompt_valid), self.prompt_ready.eq(control.prompt.ready),
            control.prompt.payload.token.eq(self.prompt_token),
            control.prompt.payload.last.eq(self.prompt_last),
            self.token_valid.eq(control.tokens.valid), control.tokens.ready.eq(self.token_ready),
            self.token.eq(control.tokens.payload),
        ]
        transfers = None
        if config.program_words:
            m.submodules.transfers = transfers = WordTransfers(
                target=target, int4=config.int4
            )
        groups, job = self._groups(m, control, memory, activations, lanes, transfers)
        parameters, issue = self._parameters(m, memory)
        m.d.comb += self.read_data.eq(parameters)
        self._around_lanes(m, control, job, groups, lanes, reductions, scales, side, parameters)
        self._scalars(m, control, reductions, scales, coin)
        done = scales.done | coin.done
        if transfers is not None:
            self._transfers(m, control, memory, transfers)
            done |= transfers.done
        write = self._results(m, control, job, groups, lanes, reductions, done, activations, side)
        self._port_b(m, control, memory, lanes, scales, groups, write, issue, transfers)
        return m

    def _groups(self, m, control, memory, activations, lanes, transfers):
        """The steps and the array; what comes with each group at stage 0, and its `GroupJob`."""
        job = control.job
        m.d.comb += control.descriptor.eq(memory.b_data)
        m.submodules.steps = steps = LoopNest(
            levels=LEVELS, count_bits=12, addresses={"main": 12, "operand": 12}
        )
        product, start = job.kind == Kind.PRODUCT, control.steps_start
        waits = Signal()
        step = Signal()
        every_other = Mux(product, control.further[0] == 0, job.out_place >= OutPlace.KEYS)
        m.d.sync += waits.eq(step & every_other)
        goes_on, word = steps.busy & ~waits, steps.main
        if transfers is not None:
            there, word = self._stream(m, job, steps, step, transfers)
            goes_on &= there
        m.d.comb += [
            step.eq(goes_on), steps.advance.eq(step), steps.start.eq(start),
            control.steps_done.eq(step & steps.last[-1]),
            steps.further.eq(control.further),
            steps.main_start.eq(job.main), steps.operand_start.eq(job.operand),
            memory.a_addr.eq(word),
            activations.read_addr.eq(pipeline(m, steps.operand[2:], 1, "vector")),
        ]
        for n in range(LEVELS):
            m.d.comb += [
                steps.main_steps[n].eq(job[f"main_{n}"]),
                steps.operand_steps[n].eq(job[f"operand_{n}"]),
            ]
        columns = self._columns(m, memory, activations, steps, step & product, job)
        value_valid = pipeline(m, step & ~product, READ, "value_valid")
        quarter = pipeline(m, steps.operand[:2], READ, "quarter")
        values = activations.read_data.word_select(quarter, 16 * LANES)
        for n in range(LANES):
            value = values[16 * n : 16 * (n + 1)].as_signed()
            m.d.comb += lanes.values[n].eq(Mux(columns.group_valid, columns.group[n], value))
        return self._group_loops(m, control, start, columns.group_valid | value_valid)

    @staticmethod
    def _stream(m, job, steps, step, transfers):
        """Whether the word of a step is there; and the address of port A."""
        streams = job.transfer == Transfer.STREAM
        stores = job.transfer == Transfer.STORE
        ring = ceil_log2(RING_WORDS)
        m.d.comb += transfers.step.eq(step & streams)
        within = Mux(streams, job.main[ring:], steps.main[ring:])
        word = Mux(stores, transfers.read_word, Cat(steps.main[:ring], within))
        return transfers.ready | ~streams, word

    def _columns(self, m, memory, activations, steps, step, job):
        """The array, READ cycles after a step."""
        m.submodules.columns = columns = ProductColumns(target=self.config.target)
        upper = pipeline(m, job.halved & ~steps.odd[2], READ, "without_upper")
        lower = pipeline(m, job.halved & steps.odd[2], READ, "without_lower")
        m.d.comb += [
            columns.valid.eq(pipeline(m, step, READ, "step")),
            columns.first.eq(pipeline(m, steps.first, READ, "first")),
            columns.last.eq(pipeline(m, steps.last[0], READ, "last")),
            columns.word.eq(memory.a_data),
        ]
        for k in range(DEPTH):
            value = activations.read_data[16 * k : 16 * (k + 1)].as_signed()
            without = upper if k >= _HALF else lower
            m.d.comb += columns.vector[k].eq(Mux(without, 0, value))
        return columns

    def _group_loops(self, m, control, start, valid):
        """The loops over groups; a dict of what comes with a group at stage 0, and its job."""
        job = Signal(GroupJob, reset_less=True)
        m.submodules.groups = loops = LoopNest(
            levels=GROUP_LEVELS, count_bits=12, addresses={"parameter": 16, "out": 12}
        )
        # Groups come some cycles after their steps. So the fields change here a cycle before the
        # first group of a pass, when the last one of the pass before is in the lanes.
        product = control.job.kind == Kind.PRODUCT
        of_values = pipeline(m, start & ~product, GROUP_OF_VALUE - 1, "values_begin")
        of_products = pipeline(m, start & product, GROUP_OF_PRODUCT - 1, "products_begin")
        begins = of_values | of_products
        with m.If(begins):
            m.d.sync += job.assigned(control)
        opens = pipeline(m, begins, 1, "groups_open")
        m.d.comb += [
            loops.start.eq(opens), loops.advance.eq(valid), loops.further.eq(job.further),
            loops.parameter_start.eq(job.parameter), loops.out_start.eq(job.out),
            loops.parameter_steps.eq(job.parameter_steps), loops.out_steps.eq(job.out_steps),
        ]
        head, number, side = Signal(4), Signal(14), Signal(10)  # number: of the head's group
        first = Signal()
        with m.If(opens):
            m.d.sync += [head.eq(0), number.eq(0), side.eq(job.side), first.eq(1)]
        with m.Elif(valid):
            m.d.sync += [number.eq(number + 1), side.eq(side + 1), first.eq(0)]
            with m.If(loops.last[1]):
                m.d.sync += [head.eq(head + 1), number.eq(0), first.eq(1)]
        return {
            "valid": valid, "parameter": loops.parameter, "out": loops.out, "head": head,
            "number": number, "side": side, "first": first, "last": loops.last[1],
            "end": valid & loops.last[2], "odd": loops.odd[0], "opens": opens,
        }, job

    def _parameters(self, m, memory):
        """The parameters that port B has read; and its address, a group."""
        issue = Signal(16)
        low = pipeline(m, issue[:2], PORT_B, "parameter_chosen")
        high = pipeline(m, issue[2:4], PORT_B + 1, "quarter_chosen")
        quarter = 8 * WORD_BYTES // 4  # bits, beside each other on an FPGA
        groups = [
            pipeline(
                m, memory.b_data.word_select(n, quarter).word_select(low, 8 * GROUP_BYTES), 1,
                f"parameters_of_{n}",
            ) for n in range(4)
        ]
        return pipeline(m, Cat(*groups).word_select(high, 8 * GROUP_BYTES), 1, "parameters"), issue

    def _around_lanes(self, m, control, job, groups, lanes, reductions, scales, side, parameters):
        """What comes with a group, at the stages of the lanes."""
        position = control.position
        masked = Signal(LANES, reset_less=True)
        number, of_position = groups["number"], position[2:]
        for n in range(LANES):
            beyond = (number == of_position) & (position[:2] < n) if n else 0
            m.d.sync += masked[n].eq(((of_position < number) | beyond) & ~job.unmasked)
        head = pipeline(m, groups["head"], 1, "head")
        before_table, before_residual = (stage - side.LATENCY for stage in (
            lanes.TABLE, lanes.RESIDUAL,
        ))
        early = pipeline(m, groups["side"], before_table, "side_of_factor")
        late = pipeline(m, early, before_residual - before_table, "side_of_residual")
        residual = pipeline(m, job.lanes.residual, before_residual, "reads_residual")
        m.d.comb += [
            lanes.control.eq(job.lanes), lanes.masked.eq(masked), reductions.maximum_head.eq(head),
            lanes.maximum.eq(reductions.maximum),
            lanes.parameters.eq(parameters), scales.parameters.eq(parameters),
            lanes.upper_bytes.eq(pipeline(m, groups["odd"], lanes.TABLE, "odd")),
            scales.head.eq(pipeline(m, head, lanes.TABLE - 1, "head_of_scale")),
            lanes.scale.eq(scales.scale), lanes.exponent.eq(scales.exponent),
            side.read_addr.eq(Mux(residual, late, early)),
            lanes.side.eq(side.read_data),
            reductions.masked.eq(pipeline(m, masked, lanes.LATENCY - 1, "masked")),
            reductions.start.eq(pipeline(m, groups["opens"], lanes.LATENCY, "reduction_opens")),
            reductions.kind.eq(pipeline(m, job.reduction, lanes.LATENCY, "reduction_kind")),
            reductions.results.eq(lanes.results), reductions.least.eq(job.least),
            control.best.eq(reductions.best),
        ]

    def _scalars(self, m, control, reductions, scales, coin):
        """Scalar passes: scales, and the coin of a random choice."""
        job = control.job
        scalar, tossed = job.kind == Kind.SCALAR, job.source == Source.COIN
        computes = control.pass_start & scalar & ~tossed
        if self.config.program_words:
            computes &= job.transfer == Transfer.NONE
        m.d.comb += [
            reductions.total_head.eq(scales.total_head), scales.total.eq(reductions.total),
            scales.squares.eq(reductions.squares),
            scales.start.eq(computes),
            scales.heads.eq(job.heads), scales.source.eq(job.source),
            scales.addend.eq(job.addend),
            scales.place.eq(control.parameter), scales.lane.eq(control.token[:2]),
            coin.load.eq(pipeline(m, self.start & ~control.busy, 1, "seed_load")),
            coin.seed.eq(self.seed),
            coin.start.eq(control.pass_start & scalar & tossed),
            coin.total.eq(reductions.latest_total), reductions.mark.eq(coin.mark),
        ]

    def _transfers(self, m, control, memory, transfers):
        """Words that move between the memories."""
        job, axi = control.job, flipped(self.memory)
        connect(m, transfers.axi, axi)
        m.d.comb += [
            transfers.start.eq(
                control.pass_start & (job.transfer != Transfer.NONE) & (job.kind != Kind.VECTOR)
            ),
            transfers.transfer.eq(job.transfer),
            transfers.main.eq(job.main + control.moved),
            transfers.program.eq(job.program + control.moved),
            transfers.row.eq(
                Mux(job.parameter_place == ParameterPlace.ROW, control.token[3:], 0)
            ),
            transfers.row_words.eq(job.count_0),
            transfers.read_data.eq(memory.a_data), control.failed.eq(transfers.failed),
        ]
        if self.config.int4:
            m.d.comb += transfers.packed.eq(job.packed)
        for n in range(2):
            m.d.comb += [
                transfers.further[n].eq(control.further[n]),
                transfers.steps[n].eq(job[f"main_{n}"]),
            ]

    def _results(self, m, control, job, groups, lanes, reductions, done, activations, side):
        """Store results, and end their pass; the write of keys and values to the main memory.

        ``done`` ends a scalar pass.
        """
        slow = (job.reduction != Reduction.NONE) | (job.out_place >= OutPlace.KEYS)
        later = {
            name: pipeline(m, value, lanes.LATENCY, f"{name}_of_result")
            for name, value in {**groups, "place": job.out_place, "slow": slow}.items()
            if name not in ("parameter", "odd", "opens")
        }
        out, valid = later["out"], later["valid"]
        here = valid & (later["place"] < OutPlace.KEYS)
        m.d.comb += [
            activations.write_addr.eq(out[2:]),
            activations.write_data.eq(lanes.results.as_value().replicate(DEPTH // LANES)),
            activations.write_en.eq(Mux(here, 0xFF, 0) << (out[:2] << 3)),
            side.write_addr.eq(later["side"]), side.write_data.eq(lanes.results),
            side.write_en.eq(valid & (later["place"] == OutPlace.BOTH)),
            reductions.valid.eq(valid), reductions.first.eq(later["first"]),
            reductions.last.eq(later["last"]), reductions.head.eq(later["head"]),
            reductions.index.eq(later["number"] << 2),
        ]
        reduced = pipeline(m, later["end"] & later["slow"], reductions.LATENCY, "reduced")
        # Two passes may end in the same cycle, the later one without a reduction.
        m.d.comb += control.ends.eq((done | reduced) + (later["end"] & ~later["slow"]))
        keys = later["place"] == OutPlace.KEYS
        return self._cache_write(m, control, keys, valid & ~here, out, later["number"], lanes)

    @staticmethod
    def _cache_write(m, control, keys, valid, word, number, lanes):
        """Keys are 4 bytes of a column; values are a byte in each of four columns."""
        position = control.position
        narrow = [lanes.results[n][:8] for n in range(LANES)]
        of_keys = Cat(*narrow).replicate(WORD_BYTES // LANES)
        of_values = Cat(*(byte.replicate(DEPTH) for byte in narrow)).replicate(COLUMNS // LANES)
        key_enable = Cat(position[:3] * 4 + number[:2] == n for n in range(WORD_BYTES // LANES))
        value_enable = Cat(
            (position[:4] == n % DEPTH) & (number[0] == n // (WORD_BYTES // 2))
            for n in range(WORD_BYTES)
        )
        enable = Mux(keys, Cat(bit.replicate(LANES) for bit in key_enable), value_enable)
        return {
            "valid": pipeline(m, valid, 1, "cache_valid"),
            "word": pipeline(m, word, 1, "cache_word"),
            "data": pipeline(m, Mux(keys, of_keys, of_values), 1, "cache_data"),
            "enable": pipeline(m, Mux(valid, enable, 0), 1, "cache_enable"),
        }

    def _port_b(self, m, control, memory, lanes, scales, groups, write, issue, transfers):
        """One user of port B at a time: a pass reads in other cycles than those in which it writes,
        and `weft.models.language_core.overlap` holds passes apart.

        The host writes only while no pass runs. Beats of the program memory wait for all others.
        """
        lowest = ((1 << GROUP_BYTES) - 1) << (self.group[:4] * GROUP_BYTES)
        m.d.comb += [
            lanes.table_write.eq(self.write & self.table & ~control.busy),
            lanes.table_entry.eq(self.group), lanes.table_base.eq(self.write_data[:16]),
            lanes.table_slope.eq(self.write_data[16:32]),
            issue.eq(pipeline(m, groups["parameter"], PARAMETER_ISSUE, "parameter")),
            memory.b_addr.eq(issue[4:]), memory.b_write_data.eq(write["data"]),
            # Few signals choose 128 enables: the ones of the cache are 0 without a write.
            memory.b_write_en.eq(
                write["enable"] | Mux(self.write & ~self.table & ~control.busy, lowest, 0)
            ),
        ]
        host = self.write_data.replicate(GROUPS_OF_WORD)
        if transfers is not None:
            host = self._beats(m, control, memory, scales, groups, write, transfers)
        with m.If(write["valid"]):
            m.d.comb += memory.b_addr.eq(write["word"])
        with m.Elif(scales.busy):
            m.d.comb += issue.eq(scales.group)
        with m.Elif(control.fetch):
            m.d.comb += memory.b_addr.eq(control.fetch_word)
        with m.Elif(~control.busy):
            m.d.comb += [issue.eq(self.group), memory.b_write_data.eq(host)]
        if transfers is not None:
            beat = transfers.beat_valid & transfers.beat_ready
            with m.Elif(beat):
                m.d.comb += memory.b_addr.eq(transfers.word)
            # One register chooses all 1,024 bits; without an enable they have no effect.
            m.d.comb += memory.b_write_data.eq(Mux(write["valid"], write["data"], host))
            m.d.sync += memory.b_parts.eq(Mux(beat, 1 << transfers.place, 0))

    def _beats(self, m, control, memory, scales, groups, write, transfers):
        """When a beat may be written; and the data of host and beats, for all bytes of a word."""
        parameters = pipeline(m, groups["valid"], PARAMETER_ISSUE, "reads_parameters")
        m.d.comb += transfers.beat_ready.eq(
            control.busy & ~(write["valid"] | scales.busy | control.fetches | parameters)
        )
        twice = Cat(self.write_data, self.write_data)
        return Mux(control.busy, transfers.beat, twice).replicate(WORD_BEATS)
