"""Proof benches of the parts of the DMA's AXI4 master; the queues of the writer are shortened."""

from unittest.mock import patch

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from verif.formal.axi import ReadRules
from verif.formal.beats import BeatRules
from verif.formal.bench import FormalBench
from verif.formal.combiner import CombinerRules
from verif.formal.rules import Rules
from weft.geometry import memories
from weft.hw.dma import writer
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.axi import BURST, FIXED
from weft.hw.dma.layout import layouts
from weft.hw.dma.reader import Reader

__all__ = [
    "AxiPins", "address_bench", "combiner_bench", "order_bench", "reader_bench", "writer_bench",
]

DATA_BYTES = 4
SHORT_ADDRESS = 9  # bits of an address in the proof of the order of reads
# The shortened writer: bursts of at most 1 << BLOCK beats; bursts without a response; and bursts
# that may still end after its room fell.
BLOCK, BURSTS, SLACK = 1, 2, 1
# The write combiner: bytes of its units; blocks of 1 << COMBINER_BLOCK beats.
SIZES, COMBINER_BLOCK = [2, 1], 2


class AxiPins(wiring.Component):
    """A reader or a writer with the pins of AXI4 that rules watch.

    Parameters
    ----------
    part : Component
    rules : Rules
        Rules whose pins it needs.
    channels : dict of bool
        By the name of a channel of AXI4: whether the part drives it.
    others : tuple of str
        Other ports of the part.
    signals : tuple of str
        Signals of the part that are no ports.

    Attributes
    ----------
    pins of ``rules`` : In, Out
    ``others`` : In, Out
    ``signals`` : Out
    """

    def __init__(self, part, rules, channels, others, signals=()):
        self.part = part
        self.signals = signals
        self.channels = channels
        self.others = others
        pins = {}
        for channel, driven in channels.items():
            for pin, width in rules.signature.members.items():
                if "_" not in pin and pin in rules.PINS and pin.startswith(channel):
                    out = driven != pin.endswith("ready")
                    pins[pin] = (Out if out else In)(width.shape)
        pins |= {name: part.signature.members[name] for name in others}
        super().__init__(pins | {name: Out(getattr(part, name).shape()) for name in signals})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = self.part
        for name in self.others:
            outer, inner = getattr(self, name), getattr(part, name)
            member = part.signature.members[name]
            if member.is_signature:
                pairs = zip(outer, inner, strict=True) if member.dimensions else [(outer, inner)]
                for pin, port in pairs:
                    connect(m, flipped(pin), port)
            elif member.flow == In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        m.d.comb += [getattr(self, name).eq(getattr(part, name)) for name in self.signals]
        for channel, driven in self.channels.items():
            inner = getattr(part, channel)
            fields = {name: inner.payload[name] for name in inner.payload.shape().members}
            fields["valid"] = inner.valid
            for name, value in fields.items():
                pin = getattr(self, f"{channel}{name}", None)
                if pin is not None:
                    m.d.comb += pin.eq(value) if driven else Value.cast(value).eq(pin)
            ready = getattr(self, f"{channel}ready")
            m.d.comb += inner.ready.eq(ready) if driven else ready.eq(inner.ready)
            if "addr" in fields:
                fixed = FIXED | {"size": ceil_log2(part.data_bytes)}
                m.d.comb += [
                    getattr(self, f"{channel}{name}").eq(fixed[name])
                    for name in fixed if name != "id"
                ]
        return m


class OrderRules(Rules):
    """A reader's bursts are exactly the beats of its read requests, in order."""

    PINS = {
        "arvalid": 1, "arready": 1, "araddr": 32, "arlen": 8,
        "requests_valid": 1, "requests_ready": 1, "requests_payload_addr": SHORT_ADDRESS,
        "requests_payload_last_beat": 5,
    }
    RULES = {
        "ar_order": "bursts of reads are the beats of the read requests, in order, and no others",
    }
    COVERS = {"ar_ends": "a read request of several bursts has been read"}

    def elaborate(self, platform):
        m, size, block = Module(), ceil_log2(DATA_BYTES), ceil_log2(BURST)
        request_fire = self.requests_valid & self.requests_ready
        burst = self.arvalid & self.past(m, ~self.arvalid | self.arready, "free")
        # Of the request that is read, and of the next one: its first beat not yet read, and the
        # number of beats from there on, less one.
        valid, several = Signal(2), Signal()
        firsts, lengths = (
            [Signal(width) for _ in range(2)] for width in (SHORT_ADDRESS - size, block + 1)
        )
        first, length = self.requests_payload_addr[size:], Signal(block + 1)
        end = burst & (self.arlen == lengths[0])
        remaining = Signal(2)
        m.d.comb += [
            length.eq(self.requests_payload_last_beat - first[:block]),
            remaining.eq(Mux(end, valid >> 1, valid)),
        ]
        m.d.sync += valid.eq(Mux(request_fire, remaining << 1 | 1, remaining))
        with m.If(burst):
            m.d.sync += [
                firsts[0].eq(firsts[0] + self.arlen + 1),
                lengths[0].eq(lengths[0] - self.arlen - 1), several.eq(~end),
            ]
        with m.If(end):
            m.d.sync += [firsts[0].eq(firsts[1]), lengths[0].eq(lengths[1])]
        for n in range(2):
            with m.If(request_fire & ~remaining[n] & (remaining[n - 1] if n else 1)):
                m.d.sync += [firsts[n].eq(first), lengths[n].eq(length)]
        self.check(m, "ar_order", ~burst | (
            valid[0] & (self.araddr >> size == firsts[0]) & (self.arlen <= lengths[0])
        ))
        self.cover(m, "ar_ends", end & several)
        return m


class RequestAssumptions(Rules):
    """The rules of read requests that the proof of a reader assumes."""

    PINS = {"valid": 1, "ready": 1, "payload_addr": 32, "payload_last_beat": 5}
    ASSUMPTIONS = {"last_beat": "the last beat of a read request is not before its first one"}

    def elaborate(self, platform):
        m = Module()
        first_beat = self.payload_addr[ceil_log2(DATA_BYTES) :][: ceil_log2(BURST)]
        self.require(m, "last_beat", ~self.valid | (self.payload_last_beat >= first_beat))
        return m

    def require(self, m, rule, holds):
        """Assume it; a subclass checks it instead."""
        self.assume(m, holds)


class RequestRules(RequestAssumptions):
    """The address generator keeps these assumptions, and holds a request until it is taken."""

    RULES = RequestAssumptions.ASSUMPTIONS | {
        "stays": "a read request stays valid and unchanged until it is taken",
    }
    COVERS = {
        "waits": "a read request waits", "long": "a read request goes beyond its block",
    }

    def elaborate(self, platform):
        m = super().elaborate(platform)
        self.check(m, "stays", self.stable(
            m, self.valid, self.ready, self.payload_addr, self.payload_last_beat
        ))
        self.cover(m, "waits", self.valid & ~self.ready)
        self.cover(m, "long", self.valid & self.payload_last_beat[ceil_log2(BURST)])
        return m

    def require(self, m, rule, holds):
        self.check(m, rule, holds)


class ShortWriter(writer.Writer):
    """A writer with bursts of at most two beats, and space for four of them.

    Attributes
    ----------
    drop : Signal
        The oldest entry has no data, and is dropped in this cycle.
    """

    def __init__(self):
        with patch.object(writer, "BLOCK", BLOCK):
            super().__init__(data_bytes=DATA_BYTES, target="generic")
        self.drop = Signal()

    def elaborate(self, platform):
        with patch.multiple(writer, BURSTS=BURSTS, SLACK=SLACK, BEATS=2 * BURSTS << BLOCK):
            m = super().elaborate(platform)
        oldest = m.submodules.bursts.o
        m.d.comb += self.drop.eq(oldest.valid & oldest.ready & oldest.payload.no_data)
        return m


class ShortCombiner(writer.WriteCombiner):
    """A write combiner with blocks of four beats, units of both kinds, and rows of eight beats."""

    def __init__(self):
        unit = writer.WriteUnit(
            data_bytes=DATA_BYTES, max_index=DATA_BYTES // min(SIZES), row_bytes=8 * DATA_BYTES
        )
        with patch.object(writer, "BLOCK", COMBINER_BLOCK):
            super().__init__(unit_sizes=SIZES, unit=unit, data_bytes=DATA_BYTES)

    def elaborate(self, platform):
        with patch.object(writer, "BLOCK", COMBINER_BLOCK):
            return super().elaborate(platform)


def combiner_bench():
    """The bench of the write combiner."""
    part = ShortCombiner()
    return FormalBench(part, {"": CombinerRules(
        sizes=SIZES, block=COMBINER_BLOCK, size=ceil_log2(DATA_BYTES),
        last_byte=len(part.units.unit.last_byte), slack=writer.SLACK,
    )})


def address_bench(config):
    """The bench of the address generator."""
    part = AddressGenerator(
        data_bytes=DATA_BYTES, geometries=memories(config), layouts=layouts(config)
    )
    last_beat = part.requests.payload.last_beat
    return FormalBench(part, {"requests_": RequestRules(payload_last_beat=len(last_beat))})


def reader_bench():
    """The bench of the reader."""
    rules = ReadRules(data_bytes=DATA_BYTES, beats=BURST)
    return FormalBench(_reader(rules), {"": rules, "requests_": RequestAssumptions()})


def order_bench():
    """The bench of a reader with short addresses: which beats it reads."""
    reader = _reader(
        ReadRules(data_bytes=DATA_BYTES, beats=BURST), addr_bits=SHORT_ADDRESS
    )
    assumptions = RequestAssumptions(payload_addr=SHORT_ADDRESS)
    return FormalBench(reader, {"": OrderRules(), "requests_": assumptions})


def _reader(rules, **options):
    part = Reader(
        data_bytes=DATA_BYTES, max_beats=1, part_bytes=DATA_BYTES, depth=4 * BURST,
        target="generic", **options,
    )
    return AxiPins(part, rules, {"ar": True, "r": False}, ("requests", "stop", "idle"))


def writer_bench(*given):
    """The bench of the writer. It assumes the rules ``given``, which are proven before."""
    rules = BeatRules(
        data_bytes=DATA_BYTES, block=BLOCK, max_bursts=BURSTS, slack=SLACK, limit=BURSTS,
        given=given,
    )
    pins = AxiPins(
        ShortWriter(), rules, {"aw": True, "w": True, "b": False}, ("beats", "room"), ("drop",)
    )
    return FormalBench(pins, {"": rules})
