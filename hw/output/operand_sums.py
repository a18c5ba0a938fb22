"""Sums over the rows of loaded operands, computed during the load and read with the results."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.arith.multiplier import Multiplier
from weft.hw.buffers.bank import LUT_RAM_WORDS, Bank
from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.hw.output.lanes import onehot_mux
from weft.latencies import OPERAND_SUMS_READ

__all__ = ["PairSums", "PanelSums", "RowSums"]


class _Rows:
    """Maps the rows of an operand to ``lanes`` accumulators, which they share in ``folds``.

    If a stream word has whole rows, and a panel needs several words, the rows of each word are a
    fold: row ``fold * lanes + lane``. Otherwise each row has an accumulator of its own.
    """

    def __init__(self, geometry, count):
        g = self.geometry = geometry
        word_rows = g.stream // g.depth
        folded = g.segments > 1 and g.stream % g.depth == 0 and word_rows % count == 0
        self.lanes, self.folds = (word_rows, g.segments) if folded else (g.edge, 1)

    def segments(self, lane, term, size):
        """The segments in which a ``term`` of ``size`` bytes of the stream word is the lane's."""
        g, segments = self.geometry, set()
        for segment in range(g.segments):
            byte = segment * g.stream + term * size
            row = byte % g.word_bytes // g.depth
            padding = byte >= g.group * g.word_bytes
            if not padding and row == (segment * self.lanes if self.folds > 1 else 0) + lane:
                segments.add(segment)
        return segments


class PanelSums(wiring.Component):
    """For each row (column) of a panel, the sum of a term over its bytes; one entry a page.

    The entry of a page is the sum from the first byte of the panel to the last byte of the page.
    A panel that continues another one continues its sum. So the entry of the last page that a job,
    or a chain of jobs, reads is the sum that the job needs. An entry can be read `latency` cycles
    after the last word of the page. Padding bytes are zero and add nothing. Sums are modulo 2^32.

    Operands are loaded one at a time, so they share the logic that computes the terms.

    Parameters
    ----------
    geometries : list of `weft.geometry.Operand`
        The operands to sum.
    writes : list of shapes
        ``valid`` and `weft.hw.control.job_table.BufferWrite`, for each operand.
    counts : list of int
        Neighbouring sums in a read, for each operand; a power of two.
    target : str
        The target of the Config.

    Attributes
    ----------
    write_<n> : In, the shape from ``writes``
        Buffer write of the loader. Its data is the same for all operands.
    page_<n> : In, page number
        Read the sums up to the end of this page.
    index_<n> : In
        Read the sums of rows ``index * count`` to ``index * count + count - 1``.
    sums_<n> : Out, ``count`` x 32 bits
        READ cycles after ``page_<n>`` and ``index_<n>``.
    """

    TERM: int  # cycles from a word to its terms
    BYTES = 1  # of a term
    READ = OPERAND_SUMS_READ
    SUM = signed(32)

    def __init__(self, *, geometries, writes, counts, target):
        self.rows = [_Rows(g, count) for g, count in zip(geometries, counts, strict=True)]
        self.counts = counts
        self.target = target
        # The terms of a lane are added in a tree, one level a cycle.
        terms = range(geometries[0].stream // self.BYTES)
        most = max(
            sum(any(self._lane_segments(lane, term)) for term in terms)
            for lane in range(max(rows.lanes for rows in self.rows))
        )
        self.levels = max(1, ceil_log2(most))
        ports = {}
        for n, (rows, count) in enumerate(zip(self.rows, counts, strict=True)):
            ports |= {
                f"write_{n}": In(writes[n]),
                f"page_{n}": In(writes[n]["write"].shape["page"].shape),
                f"index_{n}": In(range(-(-rows.geometry.edge // count))),
                f"sums_{n}": Out(data.ArrayLayout(self.SUM, count)),
            }
        super().__init__(ports)

    @property
    def latency(self):
        """Cycles from the last word of a page to its entry: terms, tree, sum, memory."""
        return self.TERM + self.levels + 2

    def _lane_segments(self, lane, term):
        """For each operand, the segments in which a term is a lane's."""
        return [
            rows.segments(lane, term, self.BYTES) if lane < rows.lanes else set()
            for rows in self.rows
        ]

    def term(self, m, n, *values):
        """The term of BYTES neighbouring bytes, TERM cycles later."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        terms, t_valid, t_write, selects = self._terms(m)
        s_valid, s_write, s_begin = self._sum_control(m, t_valid, t_write)
        sums = [[] for _ in self.rows]
        for lane in range(max(rows.lanes for rows in self.rows)):
            term = self._lane_term(m, lane, terms, selects)
            for n, rows in enumerate(self.rows):
                if lane >= rows.lanes:
                    continue
                # A ring with the sum of each fold; the next one to add to is the last.
                ring = [Signal(self.SUM, name=f"sum_{n}_{lane}_{f}") for f in range(rows.folds)]
                total = self._total(m, platform, ring[-1], term, s_begin[n])
                with m.If(s_valid[n]):
                    moves = zip(ring, [total, *ring], strict=False)
                    m.d.sync += [register.eq(value) for register, value in moves]
                sums[n].append(ring[0])
        for n, rows in enumerate(self.rows):
            self._memory(m, n, rows, s_valid[n], s_write[n], sums[n])
        return m

    def _terms(self, m):
        """All terms of a stream word; the delayed ``valid`` and write of each operand.

        Also, for each operand, a bit for each segment: the terms of the next cycle are valid, and
        belong to this segment.
        """
        writes = [getattr(self, f"write_{n}") for n in range(len(self.rows))]
        stream = self.rows[0].geometry.stream
        values = data.ArrayLayout(signed(8), stream)(writes[0].write.data)
        terms = [
            self.term(m, n, *(values[self.BYTES * n + byte] for byte in range(self.BYTES)))
            for n in range(stream // self.BYTES)
        ]
        t_valid, t_write, selects = [], [], []
        for n, write in enumerate(writes):
            fields = {name: write.write[name] for name in ("segment", "begin", "page")}
            layout = data.StructLayout({name: field.shape() for name, field in fields.items()})
            control = Signal(layout, name=f"control_{n}")
            m.d.comb += [control[name].eq(field) for name, field in fields.items()]
            early = pipeline(m, control, self.TERM - 1, f"t_early_{n}")
            t_write.append(pipeline(m, early, 1, f"t_write_{n}"))
            valid = write.valid
            for _ in range(self.TERM):
                early_valid, valid = valid, Signal(name=f"t_valid_{n}")
                m.d.sync += valid.eq(early_valid)
            t_valid.append(valid)
            segments = range(self.rows[n].geometry.segments)
            selects.append([early_valid & (early.segment == segment) for segment in segments])
        return terms, t_valid, t_write, selects

    def _sum_control(self, m, t_valid, t_write):
        """``valid``, the write and ``begin`` of each operand, in step with the sums of the terms.

        ``begin`` is 1 in the first word of a panel, for all of its folds.
        """
        s_valid, s_write, s_begin = [], [], []
        for n, (valid, write) in enumerate(zip(t_valid, t_write, strict=True)):
            s_write.append(pipeline(m, write, self.levels, f"s_write_{n}"))
            first_word, begin = Signal(name=f"first_word_{n}"), write.begin
            if self.rows[n].folds > 1:
                begin = Mux(write.segment == 0, begin, first_word)
            with m.If(valid):
                m.d.sync += first_word.eq(begin)
            for _ in range(self.levels):
                stage = Signal(2, name=f"s_control_{n}")
                m.d.sync += stage.eq(Cat(valid, begin))
                valid, begin = stage
            s_valid.append(valid)
            s_begin.append(begin)
        return s_valid, s_write, s_begin

    def _total(self, m, platform, acc, term, begin):
        """``(0 if begin else acc) + term``."""
        fabric = FABRICS["generic" if platform is None else self.target]
        return fabric.add_to(m, acc, term, begin)

    def _lane_term(self, m, lane, terms, selects):
        """The sum of all terms of a word that belong to a lane; ``selects`` as in `_terms`."""
        parts = []
        for number, term in enumerate(terms):
            enable, always = Const(0), True
            operands = zip(self.rows, self._lane_segments(lane, number), strict=True)
            for n, (rows, segments) in enumerate(operands):
                if lane >= rows.lanes:
                    continue
                always &= (
                    len(segments) == rows.geometry.segments or rows.folds > 1 and bool(segments)
                )
                for segment in sorted(segments):
                    enable = enable | selects[n][segment]
            if always:
                parts.append(term)
            elif not isinstance(enable, Const):
                r_enable = Signal(name=f"enable_{lane}_{number}")
                m.d.sync += r_enable.eq(enable)
                parts.append(Mux(r_enable, term, 0))
        for level in range(self.levels):
            pairs = [sum(parts[n + 1 : n + 2], parts[n]) for n in range(0, len(parts), 2)]
            parts = []
            for n, pair in enumerate(pairs):
                parts.append(Signal(pair.shape(), name=f"s_{lane}_{level}_{n}", reset_less=True))
                m.d.sync += parts[-1].eq(pair)
        return parts[0]

    def _memory(self, m, n, rows, valid, write, sums):
        """The memory of an operand's sums, its write port and its read port."""
        g, count = rows.geometry, self.counts[n]
        fold = write.segment[: ceil_log2(rows.folds)] if rows.folds > 1 else Const(0, 0)
        w_valid = Signal(name=f"w_valid_{n}")
        w_addr = Signal(len(fold) + len(write.page), name=f"w_addr_{n}", reset_less=True)
        m.d.sync += [w_valid.eq(valid), w_addr.eq(Cat(fold, write.page))]
        depth = g.pages << len(fold)
        memory = Bank(
            width=32 * rows.lanes, depth=depth, target=self.target, lut_ram=depth <= LUT_RAM_WORDS
        )
        m.submodules[f"memory_{n}"] = memory
        page, index = getattr(self, f"page_{n}"), getattr(self, f"index_{n}")
        fold_bits = ceil_log2(rows.lanes // count) if rows.folds > 1 else len(index)
        address = Cat(index[fold_bits:], page) if len(fold) else page
        outputs = getattr(self, f"sums_{n}")
        m.d.comb += [
            memory.write_en.eq(w_valid),
            memory.write_addr.eq(w_addr),
            memory.write_data.eq(Cat(sums)),
        ]
        if rows.lanes <= count:  # the word has no more sums than a read: the address is delayed
            wait = self.READ - Bank.LATENCY
            m.d.comb += memory.read_addr.eq(pipeline(m, address, wait, f"address_{n}"))
            m.d.comb += outputs.as_value().eq(memory.read_data)
            return
        m.d.comb += memory.read_addr.eq(address)
        select = pipeline(m, index[:fold_bits], Bank.LATENCY - 1, f"select_{n}")
        for i in range(min(count, rows.lanes)):
            words = [memory.read_data[32 * lane :][:32] for lane in range(i, rows.lanes, count)]
            m.d.comb += outputs[i].eq(onehot_mux(m, words, select, f"sum_{n}_{i}"))


class RowSums(PanelSums):
    """``sum(x[k])``: the factor of the other operand's zero point."""

    TERM = 1

    def term(self, m, n, value):
        term = Signal(signed(8), name=f"term_{n}", reset_less=True)
        m.d.sync += term.eq(value)
        return term


class PairSums(PanelSums):
    """``sum(x[k] * x[k+1])`` over even k: the correction term of a fast inner product.

    ``depth`` is even. There are ``stream / 2`` multipliers, one for each pair of neighbouring
    bytes.
    """

    TERM = Multiplier.LATENCY + 1  # a register after the DSP block, which may be far away
    BYTES = 2

    def term(self, m, n, first, second):
        product = FABRICS[self.target].multiplier(a=signed(8), b=signed(8))
        m.submodules[f"product_{n}"] = product
        m.d.comb += [product.a.eq(first), product.b.eq(second)]
        term = Signal(product.product.shape(), name=f"term_{n}", reset_less=True)
        m.d.sync += term.eq(product.product)
        return term
