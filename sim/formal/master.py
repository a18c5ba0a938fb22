"""The halves of the DMA's master with the pins that rules of AXI4 watch, and what they are given.

The queue of the one that writes is cut short, so that what is in it can be proven.
"""

from unittest.mock import patch

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.geometry import memories
from weft.hw.dma import reader, write_combiner, writer
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.axi import BURST, FIXED
from weft.hw.dma.layout import layouts
from weft.sim.formal.axi import ReadRules
from weft.sim.formal.beats import BeatRules
from weft.sim.formal.bench import FormalBench
from weft.sim.formal.gather import GatherRules
from weft.sim.formal.rules import Rules

__all__ = ["gathers", "reads", "splits", "walks", "writes"]

DATA_BYTES = 4
SHORT = 9  # bits of an address, where it is followed
# Of the short queue: bursts of 1 << BLOCK beats at most; how many, and what comes without room.
BLOCK, BURSTS, SLACK = 1, 2, 1
# Of what is gathered: bytes of its units; blocks of 1 << GATHERED beats.
SIZES, GATHERED = [2, 1], 2


class _Half(wiring.Component):
    """A reader or a writer behind pins of AXI4.

    Attributes
    ----------
    pins of rules : In, Out
    others of the part : In, Out
        As of it.
    what it tells : Out
        Signals of the part that are no pins of it.
    """

    def __init__(self, part, rules, channels, others, tells=()):
        self.part = part
        self.tells = tells
        self.channels = channels
        self.others = others
        pins = {}
        for channel, outwards in channels.items():
            for pin, width in rules.signature.members.items():
                if "_" not in pin and pin in rules.PINS and pin.startswith(channel):
                    out = outwards != pin.endswith("ready")
                    pins[pin] = (Out if out else In)(width.shape)
        pins |= {name: part.signature.members[name] for name in others}
        super().__init__(pins | {name: Out(getattr(part, name).shape()) for name in tells})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = self.part
        for name in self.others:
            here, there = getattr(self, name), getattr(part, name)
            if name == "stretches":
                connect(m, flipped(here), there)
            elif part.signature.members[name].flow == In:
                m.d.comb += there.eq(here)
            else:
                m.d.comb += here.eq(there)
        m.d.comb += [getattr(self, name).eq(getattr(part, name)) for name in self.tells]
        for channel, outwards in self.channels.items():
            inner = getattr(part, channel)
            fields = {name: inner.payload[name] for name in inner.payload.shape().members}
            fields["valid"] = inner.valid
            for name, value in fields.items():
                pin = getattr(self, f"{channel}{name}", None)
                if pin is not None:
                    m.d.comb += pin.eq(value) if outwards else Value.cast(value).eq(pin)
            ready = getattr(self, f"{channel}ready")
            m.d.comb += inner.ready.eq(ready) if outwards else ready.eq(inner.ready)
            if "addr" in fields:
                fixed = FIXED | {"size": ceil_log2(part.data_bytes)}
                m.d.comb += [
                    getattr(self, f"{channel}{name}").eq(fixed[name])
                    for name in fixed if name != "id"
                ]
        return m


class SplitRules(Rules):
    """Of a reader that is given stretches of memory: what it reads is all of them."""

    PINS = {
        "arvalid": 1, "arready": 1, "araddr": 32, "arlen": 8,
        "stretches_valid": 1, "stretches_ready": 1, "stretches_payload_addr": SHORT,
        "stretches_payload_last": 5,
    }
    RULES = {
        "ar_order": "bursts of reads are the beats of the stretches asked for, in order: no others",
    }
    COVERS = {"ar_ends": "a stretch of several bursts has been read"}

    def elaborate(self, platform):
        m, size, block = Module(), ceil_log2(DATA_BYTES), ceil_log2(BURST)
        takes = self.stretches_valid & self.stretches_ready
        new = self.arvalid & self.past(m, ~self.arvalid | self.arready, "free")
        # Of the stretch that is read, and of the next one: its first beat that is due, and how many
        # are, less one.
        there, several = Signal(2), Signal()
        firsts, mosts = ([Signal(width) for _ in range(2)] for width in (SHORT - size, block + 1))
        first, most = self.stretches_payload_addr[size:], Signal(block + 1)
        ends = new & (self.arlen == mosts[0])
        left = Signal(2)
        m.d.comb += [
            most.eq(self.stretches_payload_last - first[:block]),
            left.eq(Mux(ends, there >> 1, there)),
        ]
        m.d.sync += there.eq(Mux(takes, left << 1 | 1, left))
        with m.If(new):
            m.d.sync += [
                firsts[0].eq(firsts[0] + self.arlen + 1), mosts[0].eq(mosts[0] - self.arlen - 1),
                several.eq(~ends),
            ]
        with m.If(ends):
            m.d.sync += [firsts[0].eq(firsts[1]), mosts[0].eq(mosts[1])]
        for n in range(2):
            with m.If(takes & ~left[n] & (left[n - 1] if n else 1)):
                m.d.sync += [firsts[n].eq(first), mosts[n].eq(most)]
        self.check(m, "ar_order", ~new | (
            there[0] & (self.araddr >> size == firsts[0]) & (self.arlen <= mosts[0])
        ))
        self.cover(m, "ar_ends", ends & several)
        return m


class StretchRules(Rules):
    """What a reader is promised."""

    PINS = {"valid": 1, "ready": 1, "payload_addr": 32, "payload_last": 5}
    SAID = {"behind": "a stretch of memory ends where it begins, or behind that"}

    def elaborate(self, platform):
        m = Module()
        self.kept(m, "behind", ~self.valid | (self.payload_last >= self.payload_addr[
            ceil_log2(DATA_BYTES) :][: ceil_log2(BURST)]))
        return m

    def kept(self, m, rule, value):
        """It is promised; or it is a rule."""
        self.assume(m, value)


class WalkRules(StretchRules):
    """The same of whoever promises it, and that it stays as long as the reader does not take it."""

    RULES = StretchRules.SAID | {"stays": "a stretch of memory, once asked for, stays until taken"}
    COVERS = {"waits": "a stretch waits", "long": "one goes beyond its block"}

    def elaborate(self, platform):
        m = super().elaborate(platform)
        self.check(m, "stays", self.stable(
            m, self.valid, self.ready, self.payload_addr, self.payload_last
        ))
        self.cover(m, "waits", self.valid & ~self.ready)
        self.cover(m, "long", self.valid & self.payload_last[ceil_log2(BURST)])
        return m

    def kept(self, m, rule, value):
        self.check(m, rule, value)


class ShortReader(reader.Reader):
    """A reader with addresses of `SHORT` bits."""

    def __init__(self):
        with patch.object(reader, "ADDRESS", SHORT):
            super().__init__(
                data_bytes=DATA_BYTES, beats=1, unit=DATA_BYTES, depth=4 * BURST, target="generic"
            )

    def elaborate(self, platform):
        with patch.object(reader, "ADDRESS", SHORT):
            return super().elaborate(platform)


class ShortWriter(writer.Writer):
    """A writer with bursts of two beats at most, and room for four of them.

    Attributes
    ----------
    drops : Signal
        What is void, and the oldest, is done with.
    """

    def __init__(self):
        with patch.object(write_combiner, "BLOCK", BLOCK):
            super().__init__(data_bytes=DATA_BYTES, target="generic")
        self.drops = Signal()

    def elaborate(self, platform):
        with patch.multiple(writer, BURSTS=BURSTS, SLACK=SLACK, BEATS=2 * BURSTS << BLOCK):
            m = super().elaborate(platform)
        oldest = m.submodules.bursts.o
        m.d.comb += self.drops.eq(oldest.valid & oldest.ready & oldest.payload.void)
        return m


class ShortGather(write_combiner.WriteCombiner):
    """A gather with blocks of four beats, of units of both kinds, of rows of eight beats."""

    def __init__(self):
        unit = write_combiner.Unit(
            data_bytes=DATA_BYTES, parts=DATA_BYTES // min(SIZES), longest=8 * DATA_BYTES
        )
        with patch.object(write_combiner, "BLOCK", GATHERED):
            super().__init__(units=SIZES, unit=unit, data_bytes=DATA_BYTES)

    def elaborate(self, platform):
        with patch.object(write_combiner, "BLOCK", GATHERED):
            return super().elaborate(platform)


def gathers():
    """The bench of what makes bursts of results."""
    part = ShortGather()
    most = part.units.unit.most
    return FormalBench(part, {"": GatherRules(
        sizes=SIZES, block=GATHERED, size=ceil_log2(DATA_BYTES), most=len(most), slack=writer.SLACK
    )})


def walks(config):
    """The bench of what asks for stretches."""
    part = AddressGenerator(
        data_bytes=DATA_BYTES, geometries=memories(config), layouts=layouts(config)
    )
    last = part.stretches.payload.last
    return FormalBench(part, {"stretches_": WalkRules(payload_last=len(last))})


def reads():
    """The bench of the half that reads."""
    rules = ReadRules(data_bytes=DATA_BYTES, beats=BURST)
    part = reader.Reader(
        data_bytes=DATA_BYTES, beats=1, unit=DATA_BYTES, depth=4 * BURST, target="generic"
    )
    half = _Half(part, rules, {"ar": True, "r": False}, ("stretches", "stop", "idle"))
    return FormalBench(half, {"": rules, "stretches_": StretchRules()})


def splits():
    """The bench of a reader whose addresses are short: which beats it reads."""
    pins = ReadRules(data_bytes=DATA_BYTES, beats=BURST)
    half = _Half(
        ShortReader(), pins, {"ar": True, "r": False}, ("stretches", "stop", "idle")
    )
    return FormalBench(half, {"": SplitRules(), "stretches_": StretchRules(payload_addr=SHORT)})


def writes(*given):
    """The bench of the half that writes, where some rules are known to be kept."""
    rules = BeatRules(
        data_bytes=DATA_BYTES, block=BLOCK, deep=BURSTS, slack=SLACK, limit=BURSTS, given=given
    )
    half = _Half(
        ShortWriter(), rules, {"aw": True, "w": True, "b": False}, ("beats", "room"), ("drops",)
    )
    return FormalBench(half, {"": rules})
