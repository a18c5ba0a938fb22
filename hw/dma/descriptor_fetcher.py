"""The descriptor fetcher: queues descriptors, checks them, and sends their words to the engine."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.commands import VERSION, JobFlag, LoadFlag, Opcode, Region
from weft.descriptors import DESCRIPTOR_BYTES, DescriptorWord, ElementOrder
from weft.hw.buffers.bank import Bank
from weft.hw.control.decoder import exceeds
from weft.hw.dma.bounds_check import AddressWindow, BoundsCheck

__all__ = ["DescriptorFetcher"]

WORDS = DESCRIPTOR_BYTES // 4
# Indices of the words that are read in each pass, in this order. ORDER comes before the words
# whose meaning depends on it.
CHECK_WORDS = (
    0, 1, 2, 3, DescriptorWord.ORDER, DescriptorWord.ADDRESS, DescriptorWord.STRIDE,
    DescriptorWord.LINES, DescriptorWord.K,
)
LOAD_WORDS = range(8)
JOB_WORDS = *range(8), DescriptorWord.ADDRESS, DescriptorWord.STRIDE


class ReadPass(enum.Enum, shape=2):
    """Purpose for which the words of a descriptor are read."""

    CHECK = 0
    FETCH = 1
    SEND = 2


class DescriptorKind:
    """Registers with the fields of a descriptor that decide the meaning of its other words.

    Parameters
    ----------
    max_words : int
        Words of a panel, at most.

    Attributes
    ----------
    load : Signal
        1: a load, 0: a job.
    keep : Signal
        The job keeps its sums: it has no results.
    narrow : Signal
        The results of the job are narrow.
    operand : Signal
        The load fills A or B.
    order : Signal of `weft.descriptors.ElementOrder`
    packed : Value
        The order is PACKED.
    words : Signal
        Words of a panel.
    """

    def __init__(self, *, max_words):
        self.load, self.keep, self.narrow, self.operand = (
            Signal(name=name) for name in ("load", "keep", "narrow", "operand")
        )
        self.order = Signal(ElementOrder)
        self.packed = self.order == ElementOrder.PACKED
        self.words = Signal(range(max_words + 1))


class DescriptorFetcher(wiring.Component):
    """Reads each descriptor up to three times; a bad one is dropped after the first.

    ===== ============ ======================= ==================================================
    pass  descriptors  starts while not        words
    ===== ============ ======================= ==================================================
    CHECK all                                  `CHECK_WORDS`, to the checks of the fetcher; then
                                               the words that the bounds check requests
    FETCH loads        ``fetch_busy``          `CHECK_WORDS`, to the address generator; then
                                               the pulse ``fetch_start``
    SEND  all          ``header_busy``, or     the header, to the header inserter; of a job
                       ``hold_jobs`` for jobs  with results, words 0, 1, 3, 8 and 9 also to the
                                               result address generator
    ===== ============ ======================= ==================================================

    Descriptors are handled one at a time, in order. A word is on ``word`` two cycles after its
    read started.

    Parameters
    ----------
    depth : int
        Descriptors in the queue: a power of two.
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    size : int
        Bytes of a value of A and B.
    data_bytes : int
        Bytes of a beat.
    sizes, units : list of int
        Bytes of a result, and of a write unit: of sums, then of narrow results, if there are any.
    narrow_flags : `weft.commands.JobFlag`
        The flag that makes the results of a job narrow.
    target : str
        As in Config.
    window : bool
        The engine has a window of addresses.

    Attributes
    ----------
    descriptors : In, stream of 32 bits
    free : Out
        Number of whole descriptors for which the queue has space.
    word, index : Out
        A word, 32 bits, and its index in the descriptor; valid with one of the three below.
    fetch_take, header_take, store_take : Out
        1 bit each; the word goes to the address generator, the header inserter, the result
        address generator.
    stall : In
        1 bit; no word may be sent in this cycle.
    fetch_busy : In
        1 bit; the address generator is not idle.
    header_busy : In
        1 bit; no header may be sent.
    hold_jobs : In
        1 bit; no header of a job may be sent.
    fetch_start : Out
        1 bit; pulse: the address generator has its words, and may start.
    load_sent : Out
        1 bit; pulse: the header of a load was sent.
    feeds_latest : Out
        1 bit; the load whose header was sent last feeds the job whose header was sent last, and
        that job has results.
    bad_descriptor, bad_address : Out
        1 bit each; pulses: a descriptor was dropped; it was dropped by the bounds check.
    idle : Out
        1 bit; the queue is empty.
    allowed : In
        As of `weft.hw.dma.bounds_check.BoundsCheck`; only with a window.
    """

    def __init__(
        self, *, depth, geometries, size, data_bytes, sizes, units, narrow_flags, target,
        window=False,
    ):
        self.depth = depth
        self.geometries = geometries
        self.size = size
        self.data_bytes = data_bytes
        self.units = units
        self.narrow_flags = narrow_flags
        self.target = target
        self.bounds = BoundsCheck(
            geometries=geometries, size=size, sizes=sizes, data_bytes=data_bytes, window=window
        )
        super().__init__({
            "descriptors": In(stream.Signature(32)),
            "free": Out(range(depth + 1), init=depth),
            "word": Out(32), "index": Out(4),
            "fetch_take": Out(1), "header_take": Out(1), "store_take": Out(1),
            "stall": In(1),
            "fetch_busy": In(1), "header_busy": In(1), "hold_jobs": In(1),
            "fetch_start": Out(1), "load_sent": Out(1),
            "feeds_latest": Out(1),
            "bad_descriptor": Out(1), "bad_address": Out(1),
            "idle": Out(1),
            **({"allowed": In(AddressWindow())} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(width=32, depth=WORDS * self.depth, target=self.target)
        m.submodules.bounds = self.bounds
        drop = Signal()  # the descriptor is done, or bad
        self._receive(m, bank, drop)

        # Two read stages: ``read_index`` is read from memory, ``index`` is on the output.
        step, read, read_index = Signal(4), Signal(), Signal(4)
        r_index, in_flight = Signal(4), Signal(2)
        current, purpose = Signal(range(self.depth)), Signal(ReadPass)
        advance = ~self.stall
        m.d.comb += [
            bank.read_addr.eq(Cat(read_index, current)), bank.read_en.eq(advance),
            self.word.eq(bank.read_data),
        ]
        with m.If(advance):
            m.d.sync += [
                in_flight.eq(Cat(read, in_flight)), r_index.eq(read_index), self.index.eq(r_index),
            ]
        with m.If(drop):
            m.d.sync += current.eq(current + 1)
        drained = Signal()
        m.d.comb += drained.eq(advance & ~in_flight.any())

        valid = in_flight[1] & advance
        kind = DescriptorKind(max_words=max(g.words for g in self.geometries.values()))
        check = valid & (purpose == ReadPass.CHECK)
        bad = self._faults(m, kind, check)
        self._classify(m, kind, check)
        self._check_bounds(m, kind, valid)
        self._send(m, kind, valid, purpose)
        last = self._select_word(m, kind, purpose, step, read_index)
        self._passes(m, kind, purpose, step, last, drained, bad, read, read_index, drop)
        return m

    def _receive(self, m, bank, drop):
        """Write the words of descriptors to the queue, and count its free places."""
        write_addr, stored = Signal(range(WORDS * self.depth)), Signal()
        m.d.comb += [
            self.descriptors.ready.eq(self.free != 0),
            bank.write_en.eq(self.descriptors.valid & self.descriptors.ready),
            bank.write_addr.eq(write_addr), bank.write_data.eq(self.descriptors.payload),
            stored.eq(bank.write_en & write_addr[: ceil_log2(WORDS)].all()),
        ]
        m.d.sync += write_addr.eq(write_addr + bank.write_en)
        with m.If(drop != stored):
            m.d.sync += self.free.eq(self.free + Mux(drop, 1, -1))

    def _send(self, m, kind, valid, purpose):
        """Set the take signal of the component that gets the word, and ``feeds_latest``."""
        stored = self.index.matches(0, 1, 3, DescriptorWord.ADDRESS, DescriptorWord.STRIDE)
        send = valid & (purpose == ReadPass.SEND)
        m.d.comb += [
            self.fetch_take.eq(valid & (purpose == ReadPass.FETCH)),
            self.header_take.eq(send & ~self.index[3]),
            self.store_take.eq(send & ~kind.load & ~kind.keep & stored),
        ]
        first = send & (self.index == 0)
        latest_keep = Signal()  # ``keep`` of the job whose header was sent last
        with m.If(first & kind.load):
            m.d.sync += self.feeds_latest.eq((self.word >> 24 & LoadFlag.FEED).any() & ~latest_keep)
        with m.If(first & ~kind.load):
            m.d.sync += latest_keep.eq(kind.keep)

    def _select_word(self, m, kind, purpose, step, read_index):
        """Choose the word to read in each step of a pass; returns whether it is the last one."""
        last = Signal()
        with m.Switch(Cat(kind.load, purpose == ReadPass.SEND)):
            for case, words in (("0-", CHECK_WORDS), ("10", JOB_WORDS), ("11", LOAD_WORDS)):
                with m.Case(case):
                    m.d.comb += last.eq(step == len(words) - 1)
                    with m.Switch(step):
                        for count, word in enumerate(words):
                            with m.Case(count):
                                m.d.comb += read_index.eq(word)
        return last

    def _passes(self, m, kind, purpose, step, last, drained, bad, read, read_index, drop):
        """The states of a descriptor, from its check to the last word that is sent."""
        bounds = self.bounds
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(self.free == self.depth)
                m.d.sync += [step.eq(0), purpose.eq(ReadPass.CHECK), bad.eq(0)]
                with m.If(~self.idle):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += read.eq(1)
                with m.If(~self.stall):
                    m.d.sync += step.eq(step + 1)
                    with m.If(last):
                        m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(drained):
                    m.d.sync += step.eq(0)
                    with m.Switch(purpose):
                        with m.Case(ReadPass.CHECK):
                            m.next = "DECIDE"
                        with m.Case(ReadPass.FETCH):
                            m.d.comb += self.fetch_start.eq(1)
                            m.next = "SEND"
                        with m.Case(ReadPass.SEND):
                            m.d.comb += [drop.eq(1), self.load_sent.eq(kind.load)]
                            m.next = "IDLE"
            with m.State("DECIDE"):
                m.d.comb += [
                    self.bad_descriptor.eq(bad), drop.eq(bad),
                    bounds.start.eq(~bad & (kind.load | ~kind.keep)),
                ]
                m.next = "SEND"
                with m.If(bad):
                    m.next = "IDLE"
                with m.Elif(bounds.start):
                    m.next = "BOUNDS"
            with m.State("BOUNDS"):
                m.d.comb += [read.eq(~bounds.done), read_index.eq(bounds.index)]
                with m.If(bounds.done):
                    m.next = "SEND"
                    with m.If(kind.load):
                        m.next = "FETCH"
                    with m.If(bounds.outside):
                        m.d.comb += [
                            self.bad_descriptor.eq(1), self.bad_address.eq(1), drop.eq(1)
                        ]
                        m.next = "IDLE"
            with m.State("FETCH"):
                with m.If(~self.fetch_busy & drained):
                    m.d.sync += purpose.eq(ReadPass.FETCH)
                    m.next = "READ"
            with m.State("SEND"):
                with m.If(~self.header_busy & ~(self.hold_jobs & ~kind.load) & drained):
                    m.d.sync += purpose.eq(ReadPass.SEND)
                    m.next = "READ"

    def _faults(self, m, kind, check):
        """Check each word; returns whether one was bad, two cycles after the last ``check``."""
        word, load, packed = self.word, kind.load, kind.packed
        pages, words = (
            max(getattr(g, of) for g in self.geometries.values()) for of in ("pages", "words")
        )
        cut = ceil_log2(self.geometries[Region.A].depth)
        words_less_1 = Signal.like(kind.words)
        m.d.sync += words_less_1.eq(kind.words - 1)

        def misaligned(multiple):
            """Whether the word is no multiple of ``multiple``, a power of two."""
            return word[: ceil_log2(multiple)].any() if multiple > 1 else Const(0)

        for_job = ~kind.keep & Mux(
            kind.narrow, misaligned(self.units[-1]), misaligned(self.units[0])
        )
        always, strided = Const(1), load & ~packed
        faults = {  # by the index of the word: descriptors to which the check applies; the fault
            0: (always, ~(
                (word[8:16] == VERSION) & (
                    (word[:8] == Opcode.JOB)
                    | (word[:8] == Opcode.LOAD) & word[16:24].matches(*self.geometries)
                )
            )),
            2: (load, ~word.any() | exceeds(word, pages)),
            3: (load, ~word.any() | exceeds(word, words)),
            DescriptorWord.ORDER: (
                load,
                exceeds(word, max(ElementOrder)) | (word != ElementOrder.PACKED) & ~kind.operand,
            ),
            DescriptorWord.ADDRESS: (always, Mux(
                load, Mux(packed, misaligned(self.data_bytes), misaligned(self.size)), for_job
            )),
            DescriptorWord.STRIDE: (always, Mux(load, ~packed & misaligned(self.size), for_job)),
            DescriptorWord.LINES: (strided, word[16:].any()),
            DescriptorWord.K: (
                strided, word[cut:] != Mux(word[:cut].any(), words_less_1, kind.words)
            ),
        }
        # The faults of all words in registers; the one that applies is selected a cycle later.
        found, r_index, r_check = Signal(len(faults)), Signal.like(self.index), Signal()
        bad = Signal()
        m.d.sync += [
            found.eq(Cat(fault for _, fault in faults.values())),
            r_index.eq(self.index), r_check.eq(check),
        ]
        with m.If(r_check):
            m.d.sync += bad.eq(bad | (
                found & Cat((r_index == index) & of for index, (of, _) in faults.items())
            ).any())
        return bad

    def _classify(self, m, kind, check):
        """Set the registers of ``kind`` from the words of the CHECK pass."""
        word = self.word
        with m.If(check):
            with m.If(self.index == 0):
                m.d.sync += [
                    kind.load.eq(word[:8] == Opcode.LOAD), self.bounds.region.eq(word[16:]),
                    kind.operand.eq(word[16:24].matches(Region.A, Region.B)),
                ]
            with m.If(self.index == 1):
                m.d.sync += [
                    kind.keep.eq((word & JobFlag.KEEP).any()),
                    kind.narrow.eq((word & self.narrow_flags).any()),
                ]
            with m.If(self.index == 3):
                m.d.sync += kind.words.eq(word)
            with m.If(self.index == DescriptorWord.ORDER):
                m.d.sync += kind.order.eq(word)

    def _check_bounds(self, m, kind, valid):
        """Connect the bounds check."""
        bounds = self.bounds
        m.d.comb += [
            bounds.load.eq(kind.load),
            bounds.packed.eq(kind.load & kind.packed),
            bounds.k_minor.eq(kind.order == ElementOrder.K_MINOR),
            bounds.narrow.eq(kind.narrow), bounds.word.eq(self.word),
            bounds.word_valid.eq(valid & (self.index == bounds.index)),
        ]
        if bounds.window:
            connect(m, flipped(self.allowed), bounds.allowed)
