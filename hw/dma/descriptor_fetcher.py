"""The front: a queue of descriptors, each looked at, and then handed out word by word."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import VERSION, JobFlag, LoadFlag, Opcode, Region
from weft.descriptors import DESCRIPTOR_BYTES, DescriptorWord, ElementOrder
from weft.hw.buffers.bank import Bank
from weft.hw.control.headers import exceeds
from weft.hw.dma.bounds_check import BoundsCheck

__all__ = ["DescriptorFetcher"]

WORDS = DESCRIPTOR_BYTES // 4
# The words that are looked at, the one that says how the others are meant before those; then those
# that are handed out of a load, and of a job.
LOOKED_AT = (
    0, 1, 2, 3, DescriptorWord.ORDER, DescriptorWord.ADDRESS, DescriptorWord.STRIDE,
    DescriptorWord.LINES, DescriptorWord.K,
)
LOAD_WORDS = range(8)
JOB_WORDS = *range(8), DescriptorWord.ADDRESS, DescriptorWord.STRIDE


class FetchPass(enum.Enum, shape=2):
    """What the words of a descriptor are read for."""

    LOOK = 0
    WALK = 1
    HAND = 2


class DescriptorFetcher(wiring.Component):
    """Reads each descriptor several times: to look at it, and if it may be, to hand it out.

    First it looks at the words, and sees where they lead. Then, as soon as the walker is idle, the
    words of a load go there, and it may ``fetch`` at once. At last the header goes out, in its
    turn, and what the results of a job want to the scatter.

    Parameters
    ----------
    depth : int
        Descriptors that wait: a power of two.
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    size : int
        Bytes of a value of A and B.
    data_bytes : int
    sizes, units : list of int
        Bytes of a sum, and of a narrow result if there are any; what addresses and strides of each
        are multiples of.
    narrows : `weft.commands.JobFlag`
        What makes results narrow.
    target : str
        That of a Config.
    window : bool
        There is one.

    Attributes
    ----------
    descriptors : In, stream of 32 bits
    room : Out
        Whole descriptors that it takes.
    word, index : Out
        A word, and which of a descriptor it is.
    walk, header, store : Out
        It is for the walker, of a header, for the scatter.
    wait : In
        No word goes out in this cycle.
    fetching, sending, holds : In
        The walker is not idle; no header, no job's header may go out.
    fetch, send : Out
        Pulses: the walker may start; the header of a load has gone out.
    fed : Out
        The load whose header went out last feeds the job whose header did, which has results.
    bad, outside : Out
        Pulses: a descriptor was dropped; and that for where its addresses lead.
    idle : Out
        There is none.
    base, limit : In
        Of a window, as of `weft.hw.dma.bounds_check.BoundsCheck`.
    """

    def __init__(
        self, *, depth, geometries, size, data_bytes, sizes, units, narrows, target, window=False
    ):
        self.depth = depth
        self.geometries = geometries
        self.size = size
        self.data_bytes = data_bytes
        self.units = units
        self.narrows = narrows
        self.target = target
        self.bounds = BoundsCheck(
            geometries=geometries, size=size, sizes=sizes, data_bytes=data_bytes, window=window
        )
        super().__init__({
            "descriptors": In(stream.Signature(32)),
            "room": Out(range(depth + 1), init=depth),
            "word": Out(32), "index": Out(4),
            "walk": Out(1), "header": Out(1), "store": Out(1),
            "wait": In(1),
            "fetching": In(1), "sending": In(1), "holds": In(1),
            "fetch": Out(1), "send": Out(1),
            "fed": Out(1),
            "bad": Out(1), "outside": Out(1),
            "idle": Out(1),
            **({"base": In(32), "limit": In(32)} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=32, depth=WORDS * self.depth, target=self.target)
        put, here = Signal(range(WORDS * self.depth)), Signal(range(self.depth))
        whole, drop = Signal(), Signal()
        m.d.comb += [
            self.descriptors.ready.eq(self.room != 0),
            bank.write_en.eq(self.descriptors.valid & self.descriptors.ready),
            bank.write_addr.eq(put), bank.write_data.eq(self.descriptors.payload),
            whole.eq(bank.write_en & put[: ceil_log2(WORDS)].all()),
        ]
        m.d.sync += put.eq(put + bank.write_en)
        with m.If(drop != whole):
            m.d.sync += self.room.eq(self.room + Mux(drop, 1, -1))

        # A word is asked for, read, and here; until it is wanted.
        step, ask = Signal(4), Signal()
        asked, of = Signal(4), Signal(FetchPass)
        read_index, on_way = Signal(4), Signal(2)
        moves = ~self.wait
        m.d.comb += [
            bank.read_addr.eq(Cat(asked, here)), bank.read_en.eq(moves),
            self.word.eq(bank.read_data),
        ]
        with m.If(moves):
            m.d.sync += [
                on_way.eq(Cat(ask, on_way)), read_index.eq(asked), self.index.eq(read_index),
            ]
        there = on_way[1] & moves
        stored = self.index.matches(0, 1, 3, DescriptorWord.ADDRESS, DescriptorWord.STRIDE)
        wrong, load, keeps = self._look(m, there & (of == FetchPass.LOOK), there)
        handed = there & (of == FetchPass.HAND)
        m.d.comb += [
            self.walk.eq(there & (of == FetchPass.WALK)),
            self.header.eq(handed & ~self.index[3]),
            self.store.eq(handed & ~load & ~keeps & stored),
        ]
        self._feeds(m, handed & (self.index == 0), load, keeps)
        last = Signal()
        with m.Switch(Cat(load, of == FetchPass.HAND)):
            for case, words in (("0-", LOOKED_AT), ("10", JOB_WORDS), ("11", LOAD_WORDS)):
                with m.Case(case):
                    m.d.comb += last.eq(step == len(words) - 1)
                    with m.Switch(step):
                        for count, word in enumerate(words):
                            with m.Case(count):
                                m.d.comb += asked.eq(word)
        with m.If(drop):
            m.d.sync += here.eq(here + 1)
        drained = Signal()  # no word is on its way
        m.d.comb += drained.eq(moves & ~on_way.any())
        self._passes(m, of, step, last, drained, wrong, load, keeps, ask, asked, drop)
        return m

    def _feeds(self, m, first, load, keeps):
        """Whether a load feeds a job with results: known from the ``first`` word handed out."""
        kept = Signal()  # the sums of the job whose header went out last
        with m.If(first & load):
            m.d.sync += self.fed.eq((self.word >> 24 & LoadFlag.FEED).any() & ~kept)
        with m.If(first & ~load):
            m.d.sync += kept.eq(keeps)

    def _passes(self, m, of, step, last, drained, wrong, load, keeps, ask, asked, drop):
        """What a descriptor is read for, pass by pass."""
        bounds = self.bounds
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.idle.eq(self.room == self.depth)
                m.d.sync += [step.eq(0), of.eq(FetchPass.LOOK), wrong.eq(0)]
                with m.If(~self.idle):
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += ask.eq(1)
                with m.If(~self.wait):
                    m.d.sync += step.eq(step + 1)
                    with m.If(last):
                        m.next = "LAST"
            with m.State("LAST"):
                with m.If(drained):
                    m.d.sync += step.eq(0)
                    with m.Switch(of):
                        with m.Case(FetchPass.LOOK):
                            m.next = "JUDGE"
                        with m.Case(FetchPass.WALK):
                            m.d.comb += self.fetch.eq(1)
                            m.next = "HAND"
                        with m.Case(FetchPass.HAND):
                            m.d.comb += [drop.eq(1), self.send.eq(load)]
                            m.next = "WAIT"
            with m.State("JUDGE"):
                m.d.comb += [
                    self.bad.eq(wrong), drop.eq(wrong), bounds.start.eq(~wrong & (load | ~keeps)),
                ]
                m.next = "HAND"
                with m.If(wrong):
                    m.next = "WAIT"
                with m.Elif(bounds.start):
                    m.next = "BOUNDS"
            with m.State("BOUNDS"):
                m.d.comb += [ask.eq(~bounds.done), asked.eq(bounds.index)]
                with m.If(bounds.done):
                    m.next = "HAND"
                    with m.If(load):
                        m.next = "WALK"
                    with m.If(bounds.outside):
                        m.d.comb += [self.bad.eq(1), self.outside.eq(1), drop.eq(1)]
                        m.next = "WAIT"
            with m.State("WALK"):
                with m.If(~self.fetching & drained):
                    m.d.sync += of.eq(FetchPass.WALK)
                    m.next = "WORDS"
            with m.State("HAND"):
                with m.If(~self.sending & ~(self.holds & ~load) & drained):
                    m.d.sync += of.eq(FetchPass.HAND)
                    m.next = "WORDS"

    def _look(self, m, there, known):
        """What is wrong with a descriptor; whether it is a load; whether a job keeps its sums.

        ``there``: a word is to be looked at; ``known``: any word is on offer.
        """
        word = self.word
        pages, lines = (
            max(getattr(g, of) for g in self.geometries.values()) for of in ("pages", "words")
        )
        depth = self.geometries[Region.A].depth
        cut = ceil_log2(depth)
        wrong, load, keeps, narrow, operand = (
            Signal(name=name) for name in ("wrong", "load", "keeps", "narrow", "operand")
        )
        order, words = Signal(ElementOrder), Signal(range(lines + 1))
        raw = order == ElementOrder.PACKED
        fewer = Signal.like(words)  # by one
        m.d.sync += fewer.eq(words - 1)

        def odd(multiple):
            """Whether a word is no multiple of that."""
            return word[: ceil_log2(multiple)].any() if multiple > 1 else Const(0)

        for_job = ~keeps & Mux(narrow, odd(self.units[-1]), odd(self.units[0]))
        always, by_strides = Const(1), load & ~raw
        faults = {  # by the word: of what, and whether it is wrong there
            0: (always, ~(
                (word[8:16] == VERSION) & (
                    (word[:8] == Opcode.JOB)
                    | (word[:8] == Opcode.LOAD) & word[16:24].matches(*self.geometries)
                )
            )),
            2: (load, ~word.any() | exceeds(word, pages)),
            3: (load, ~word.any() | exceeds(word, lines)),
            DescriptorWord.ORDER: (
                load, exceeds(word, max(ElementOrder)) | (word != ElementOrder.PACKED) & ~operand,
            ),
            DescriptorWord.ADDRESS: (
                always, Mux(load, Mux(raw, odd(self.data_bytes), odd(self.size)), for_job)
            ),
            DescriptorWord.STRIDE: (always, Mux(load, ~raw & odd(self.size), for_job)),
            DescriptorWord.LINES: (by_strides, word[16:].any()),
            DescriptorWord.K: (by_strides, word[cut:] != Mux(word[:cut].any(), fewer, words)),
        }
        found, about, judged = Signal(len(faults)), Signal.like(self.index), Signal()
        m.d.sync += [
            found.eq(Cat(fault for _, fault in faults.values())),
            about.eq(self.index), judged.eq(there),
        ]
        with m.If(judged):  # a cycle on
            m.d.sync += wrong.eq(wrong | (
                found & Cat((about == index) & of for index, (of, _) in faults.items())
            ).any())
        bounds = self.bounds
        m.submodules.bounds = bounds
        m.d.comb += [
            bounds.load.eq(load), bounds.raw.eq(load & raw),
            bounds.turned.eq(order == ElementOrder.K_MINOR),
            bounds.narrow.eq(narrow), bounds.word.eq(word),
            bounds.there.eq(known & (self.index == bounds.index)),
            *(getattr(bounds, name).eq(getattr(self, name))
              for name in ("base", "limit") if bounds.window),
        ]
        with m.If(there):
            with m.If(self.index == 0):
                m.d.sync += [
                    load.eq(word[:8] == Opcode.LOAD), bounds.region.eq(word[16:]),
                    operand.eq(word[16:24].matches(Region.A, Region.B)),
                ]
            with m.If(self.index == 1):
                m.d.sync += [
                    keeps.eq((word & JobFlag.KEEP).any()), narrow.eq((word & self.narrows).any())
                ]
            with m.If(self.index == 3):
                m.d.sync += words.eq(word)
            with m.If(self.index == DescriptorWord.ORDER):
                m.d.sync += order.eq(word)
        return wrong, load, keeps
