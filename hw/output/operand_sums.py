"""Sums over the rows of what is loaded, gathered as it loads and kept for when results leave."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.arith.carry import KEEP, chain
from weft.hw.arith.multiplier import Multiplier
from weft.hw.buffers.bank import Bank
from weft.hw.delay import pipeline
from weft.hw.output.scale_product import multiplier
from weft.hw.output.select import chosen

__all__ = ["PairSums", "PanelSums", "RowSums"]


class _Rows:
    """How the rows of an operand share accumulators: ``lanes`` of them, in ``folds``.

    Where each row lies in one stream word of several, those of a word are a fold: row ``fold *
    lanes + lane``. Elsewhere each has an accumulator of its own.
    """

    def __init__(self, geometry, count):
        g = self.geometry = geometry
        share = g.stream // g.depth
        folded = g.segments > 1 and g.stream % g.depth == 0 and share % count == 0
        self.lanes, self.folds = (share, g.segments) if folded else (g.edge, 1)

    def segments(self, lane, term, size):
        """Those in which a ``term`` of ``size`` bytes of the stream word is the lane's."""
        g, found = self.geometry, set()
        for segment in range(g.segments):
            byte = segment * g.stream + term * size
            row = byte % g.word_bytes // g.depth
            padding = byte >= g.group * g.word_bytes
            if not padding and row == (segment * self.lanes if self.folds > 1 else 0) + lane:
                found.add(segment)
        return found


class PanelSums(wiring.Component):
    """For each row (column) of a panel the sum of a term over its bytes, kept an entry a page.

    The entry of a page is the sum from the panel's begin to the page's end, and that of a panel
    that carries on another goes on from its sum: the entry of the last page that a job, or a chain
    of them, reads is what it needs. It is there, can be asked for, `latency` cycles after the
    page's last word. Padding is zero, so that it adds nothing. The sums are modulo 2^32.

    Operands are loaded one at a time: they share what makes terms.

    Parameters
    ----------
    geometries : list of `weft.geometry.Operand`
        Of the operands of which there are sums.
    writes : list of shapes
        Of each: ``valid`` and `weft.hw.control.loader.BufferWrite`.
    counts : list of int
        Neighbouring sums that are asked for at once, of each; a power of two.
    target : str
        That of a Config.

    Attributes
    ----------
    write_<n> : In
    page_<n>, index_<n> : In
        Give the sums up to the end of this page, those of rows ``index * count`` and following.
    sums_<n> : Out, ``count`` of them
        READ cycles later.
    """

    TERM: int  # cycles from a word to its terms
    BYTES = 1  # that a term takes
    READ = Bank.LATENCY + 2
    SUM = signed(32)

    def __init__(self, *, geometries, writes, counts, target):
        self.rows = [_Rows(g, count) for g, count in zip(geometries, counts, strict=True)]
        self.counts = counts
        self.target = target
        # Terms of a lane are added two by two, a cycle each time.
        terms = range(geometries[0].stream // self.BYTES)
        most = max(
            sum(any(self._found(lane, term)) for term in terms)
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
        """Cycles: the terms, what they add up to, the sum, its memory."""
        return self.TERM + self.levels + 2

    def _found(self, lane, term):
        """For each operand, the segments in which a term is a lane's."""
        return [
            rows.segments(lane, term, self.BYTES) if lane < rows.lanes else set()
            for rows in self.rows
        ]

    def term(self, m, n, *values):
        """What neighbouring bytes add, TERM cycles later."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        writes = [getattr(self, f"write_{n}") for n in range(len(self.rows))]
        stream = self.rows[0].geometry.stream
        # The word is the same for all.
        values = data.ArrayLayout(signed(8), stream)(writes[0].write.data)
        terms = [
            self.term(m, n, *(values[self.BYTES * n + byte] for byte in range(self.BYTES)))
            for n in range(stream // self.BYTES)
        ]
        valid, write = [], []
        for n, one in enumerate(writes):
            facts = {name: one.write[name] for name in ("segment", "begin", "page")}
            shape = data.StructLayout({name: fact.shape() for name, fact in facts.items()})
            late = Signal(shape, name=f"facts_{n}")
            m.d.comb += [late[name].eq(fact) for name, fact in facts.items()]
            write.append(pipeline(m, late, self.TERM, f"t_write_{n}"))
            here = one.valid
            for _ in range(self.TERM):
                following = Signal(name=f"t_valid_{n}")
                m.d.sync += following.eq(here)
                here = following
            valid.append(here)

        # The terms of each lane, and what they are added to.
        s_valid, s_write, s_begin = [], [], []
        for n, (there, one) in enumerate(zip(valid, write, strict=True)):
            s_write.append(pipeline(m, one, self.levels, f"s_write_{n}"))
            begun = Signal(name=f"begun_{n}")  # in the first word of a panel
            begin = Mux(one.segment == 0, one.begin, begun) if self.rows[n].folds > 1 else one.begin
            with m.If(there):
                m.d.sync += begun.eq(begin)
            for _ in range(self.levels):
                following = Signal(2, name=f"s_orders_{n}")
                m.d.sync += following.eq(Cat(there, begin))
                there, begin = following
            s_valid.append(there)
            s_begin.append(begin)
        kept = [[] for _ in self.rows]
        for lane in range(max(rows.lanes for rows in self.rows)):
            term = self._lane_term(m, lane, terms, valid, write)
            for n, rows in enumerate(self.rows):
                if lane >= rows.lanes:
                    continue
                # The sums of all folds, the one that is due last.
                ring = [Signal(self.SUM, name=f"kept_{n}_{lane}_{f}") for f in range(rows.folds)]
                total = self._total(m, platform, ring[-1], term, s_begin[n])
                with m.If(s_valid[n]):
                    follows = zip(ring, [total, *ring], strict=False)
                    m.d.sync += [register.eq(value) for register, value in follows]
                kept[n].append(ring[0])

        for n, rows in enumerate(self.rows):
            self._keep(m, n, rows, s_valid[n], s_write[n], kept[n])
        return m

    def _total(self, m, platform, before, term, begin):
        """``(0 if begin else before) + term``; on the ECP5 in one LUT a bit."""
        if self.target == "ecp5" and platform is not None:
            bits = [term[min(n, len(term) - 1)] for n in range(len(before))]
            return chain(m, *((KEEP, bit, before[n], begin) for n, bit in enumerate(bits)))
        return Mux(begin, 0, before) + term

    def _lane_term(self, m, lane, terms, valid, write):
        """What a word adds to a lane."""
        parts = []
        for number, term in enumerate(terms):
            wanted, always = Const(0), True
            found_of = self._found(lane, number)
            for n, (rows, found) in enumerate(zip(self.rows, found_of, strict=True)):
                if lane >= rows.lanes:
                    continue
                always &= len(found) == rows.geometry.segments or rows.folds > 1 and bool(found)
                for segment in sorted(found):
                    wanted = wanted | valid[n] & (write[n].segment == segment)
            if always:
                parts.append(term)
            elif not isinstance(wanted, Const):
                parts.append(Mux(wanted, term, 0))
        for level in range(self.levels):
            pairs = [sum(parts[n + 1 : n + 2], parts[n]) for n in range(0, len(parts), 2)]
            parts = []
            for n, pair in enumerate(pairs):
                parts.append(Signal(pair.shape(), name=f"s_{lane}_{level}_{n}", reset_less=True))
                m.d.sync += parts[-1].eq(pair)
        return parts[0]

    def _keep(self, m, n, rows, valid, write, sums):
        """The memory of an operand's sums, and what is read of it."""
        g, count = rows.geometry, self.counts[n]
        fold = write.segment[: ceil_log2(rows.folds)] if rows.folds > 1 else Const(0, 0)
        k_valid = Signal(name=f"k_valid_{n}")
        k_place = Signal(len(fold) + len(write.page), name=f"k_place_{n}", reset_less=True)
        m.d.sync += [k_valid.eq(valid), k_place.eq(Cat(fold, write.page))]
        memory = Bank(width=32 * rows.lanes, depth=g.pages << len(fold), target=self.target)
        m.submodules[f"memory_{n}"] = memory
        page, index = getattr(self, f"page_{n}"), getattr(self, f"index_{n}")
        in_fold = ceil_log2(rows.lanes // count) if rows.folds > 1 else len(index)
        address = Cat(index[in_fold:], page) if len(fold) else page
        found = getattr(self, f"sums_{n}")
        m.d.comb += [
            memory.write_en.eq(k_valid),
            memory.write_addr.eq(k_place),
            memory.write_data.eq(Cat(sums)),
        ]
        if rows.lanes <= count:  # nothing to choose: it is the address that waits
            wait = self.READ - Bank.LATENCY
            m.d.comb += memory.read_addr.eq(pipeline(m, address, wait, f"address_{n}"))
            m.d.comb += found.as_value().eq(memory.read_data)
            return
        m.d.comb += memory.read_addr.eq(address)
        which = pipeline(m, index[:in_fold], Bank.LATENCY - 1, f"which_{n}")
        for i in range(min(count, rows.lanes)):
            choice = [memory.read_data[32 * lane :][:32] for lane in range(i, rows.lanes, count)]
            m.d.comb += found[i].eq(chosen(m, choice, which, f"sum_{n}_{i}"))


class RowSums(PanelSums):
    """``sum(x[k])``: what a zero point of the other operand is multiplied by."""

    TERM = 1

    def term(self, m, n, value):
        term = Signal(signed(8), name=f"term_{n}", reset_less=True)
        m.d.sync += term.eq(value)
        return term


class PairSums(PanelSums):
    """``sum(x[k] * x[k+1])`` over even k: what a fast inner product has too much.

    ``depth`` is even. ``stream / 2`` multipliers, one a pair of neighbouring bytes.
    """

    TERM = Multiplier.LATENCY + 1  # its block may be far away
    BYTES = 2

    def term(self, m, n, first, second):
        product = multiplier(self.target)(a=signed(8), b=signed(8))
        m.submodules[f"product_{n}"] = product
        m.d.comb += [product.a.eq(first), product.b.eq(second)]
        term = Signal(product.product.shape(), name=f"term_{n}", reset_less=True)
        m.d.sync += term.eq(product.product)
        return term
