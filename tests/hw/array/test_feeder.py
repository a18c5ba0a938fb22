"""The feeder: operands and control bits enter the array at their cycle, in each row and column."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import play
from verif.interleaved_mac import interleaved_mac
from verif.loader_model import write_port
from weft.commands import Region
from weft.geometry import Operand
from weft.hw.arith.bf16 import Bf16Mac, FlushingBf16Mac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.edges import Feeder
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.control.sequencer import ArrayStep
from weft.hw.control.tile_generator import Tile


class TopByte(wiring.Component):
    """An operand decoder of two stages."""

    LATENCY = 2

    def __init__(self):
        super().__init__({"i": In(16), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        top = Signal(8)
        m.d.sync += [top.eq(self.i[8:]), self.o.eq(top)]
        return m


class TopByteMac(interleaved_mac(2, 3)):
    """A MAC cell with such operands, and no start decoder."""

    A = B = 8
    OPERAND_DECODER = TopByte


class Case:
    """A MAC cell, the shape of an array, its buffers, and their contents."""

    def __init__(self, mac, rows, cols, hop, depth=1, c=True, stream=16):
        self.mac, self.rows, self.cols, self.hop = mac, rows, cols, hop
        size = 2 if mac.OPERAND_DECODER else 1
        self.geometries = {
            Region.A: Operand(rows, depth, 32, stream, size=size),
            Region.B: Operand(cols, depth, 64, stream, size=size),
        }
        if c:
            self.geometries[Region.C] = Operand(cols, 1, 128, stream, 1, 4)
        self.rng = random.Random(rows)
        self.contents = {
            region.name.lower(): [
                [[self.value(8 * g.size) for _ in range(g.depth)] for _ in range(g.edge)]
                for _ in range(g.words)
            ]
            for region, g in self.geometries.items()
        }

    def value(self, bits):
        """Random bits of a value; often a zero, a subnormal or an infinity of a float."""
        special = [0, 1, 0x7F << (bits - 8), 1 << (bits - 1), 3 << (bits - 2), (1 << bits) - 1]
        return self.rng.choice([*special, *(self.rng.randrange(1 << bits) for _ in range(6))])

    def feeder(self):
        tile = Tile(self.geometries, StructLayout({}))
        pair = self.geometries[Region.A], self.geometries[Region.B]
        step = ArrayStep(pair, tile, self.rows, folded=False)
        writes = {region.name.lower(): write_port(g) for region, g in self.geometries.items()}
        return Feeder(
            geometries=self.geometries, writes=writes, step=step, mac=self.mac, hop=self.hop,
            target="generic",
        )

    def loads(self):
        """A script that fills all buffers at the same time."""
        ports = {
            region.name.lower(): list(self._writes(g, self.contents[region.name.lower()]))
            for region, g in self.geometries.items()
        }
        for t in range(max(map(len, ports.values()))):
            yield {"writes": {
                name: {"valid": 1, "write": of[t]} if t < len(of) else {"valid": 0}
                for name, of in ports.items()
            }}

    def _writes(self, g, words):
        for line in range(g.words // g.group):
            data = b"".join(
                value.to_bytes(g.size, "little")
                for word in words[line * g.group : (line + 1) * g.group]
                for edge in word for value in edge
            ).ljust(g.segments * g.stream, b"\0")
            for segment in range(g.segments):
                part = data[segment * g.stream : (segment + 1) * g.stream]
                yield {
                    "line": line, "segment": segment, "data": int.from_bytes(part, "little"),
                }

    def steps(self, count):
        """Steps with random addresses and control bits."""
        words = {region: g.words for region, g in self.geometries.items()}
        for _ in range(count):
            step = {
                **{name: self.rng.randrange(2) for name in ("en", "clear", "capture", "drain")},
                "a_addr": self.rng.randrange(words[Region.A]),
                "b_addr": self.rng.randrange(words[Region.B]),
            }
            if Region.C in words:
                step["preload"] = self.rng.randrange(1 << self.rows)
                step["c_addr"] = self.rng.randrange(words[Region.C])
            yield {"step": step, "writes": {name: {"valid": 0} for name in self.contents}}

    def decoded(self, decoder, bits):
        """``decode(value)`` for the values in the buffers; without a decoder, the signed value."""
        if decoder is None:
            return lambda value: value - (value >> (bits - 1) << bits)
        values = sorted({
            value for words in self.contents.values()
            for word in words for edge in word for value in edge
        })
        script = [{"i": value} for value in values if value >> bits == 0]
        (out,) = play(decoder(), script, "o", tail=decoder.LATENCY)
        of = dict(zip((one["i"] for one in script), out[decoder.LATENCY :], strict=True))
        return of.__getitem__


CASES = {
    "int8": Case(PlainMac, 3, 4, 1, depth=2, c=False, stream=4),
    "int8-hop2": Case(PlainMac, 5, 3, 2, c=False),
    "int8-hop8": Case(PlainMac, 2, 2, 8, depth=3, c=False, stream=2),
    "slots1": Case(interleaved_mac(1, 2), 4, 3, 1),
    "slots3": Case(interleaved_mac(3, 5), 4, 5, 2, depth=2),
    "slots3-no-c": Case(interleaved_mac(3, 5), 3, 3, 1, c=False),
    "top-byte": Case(TopByteMac, 3, 4, 1),
    "bf16": Case(Bf16Mac, 3, 4, 1, stream=8),
    "bf16-hop2": Case(Bf16Mac, 4, 5, 2),
    "bf16-hop3-flush": Case(FlushingBf16Mac, 5, 4, 3),
    "bf16-no-c": Case(Bf16Mac, 2, 3, 1, c=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_input_enters_at_its_cycle(case):
    mac, feeder = case.mac, case.feeder()
    decode = 0 if mac.OPERAND_DECODER is None else mac.OPERAND_DECODER.LATENCY
    assert feeder.LATENCY == OperandBuffer.LATENCY + decode
    loads, steps = list(case.loads()), list(case.steps(60))
    names = ["a", "b", "control", *(["preload", "init"] if "c" in case.contents else [])]
    rest = feeder.LATENCY + mac.LATENCY + max(case.rows, case.cols)
    traces = play(feeder, [*loads, *steps], *names, tail=rest)
    outputs = {name: trace[len(loads) :] for name, trace in zip(names, traces, strict=True)}

    start_delay = mac.LATENCY - mac.SLOTS
    bits = 8 * case.geometries[Region.A].size
    operand = case.decoded(mac.OPERAND_DECODER, bits)
    start = case.decoded(mac.START_DECODER, 32)
    for t, step in enumerate(one["step"] for one in steps):
        at = t + feeder.LATENCY
        for row in range(case.rows):
            p = case.rows - 1 - row  # from the top
            want = [operand(value) for value in case.contents["a"][step["a_addr"]][row]]
            assert outputs["a"][at + p // case.hop][row] == want
        for col in range(case.cols):
            want = [operand(value) for value in case.contents["b"][step["b_addr"]][col]]
            assert outputs["b"][at + col // case.hop][col] == want
        for name, delay in {"en": 0, "clear": start_delay, "capture": mac.LATENCY}.items():
            assert outputs["control"][at + delay][name] == step[name]
        if "c" not in case.contents:
            continue
        # A start value reaches a PE when the sum of its slot comes round.
        for row in range(case.rows):
            p = case.rows - 1 - row
            now = outputs["preload"][at + start_delay + p // case.hop]
            assert now >> row & 1 == step["preload"] >> row & 1
        for col in range(case.cols):
            want = start(case.contents["c"][step["c_addr"]][col][0])
            assert outputs["init"][at + start_delay + col // case.hop][col] == want


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_only_a_feeder_with_a_c_buffer_has_start_ports(case):
    feeder = case.feeder()
    found = {"preload", "init"} & set(feeder.signature.members)
    assert found == ({"preload", "init"} if "c" in case.contents else set())
    play(feeder, [{}], "control")


def test_a_loaded_word_is_read_from_the_next_cycle_on():
    case = CASES["int8"]
    feeder = case.feeder()
    stop = {"valid": 0}
    write = {"line": 5, "segment": 0, "data": 0x04030201}
    step = {"a_addr": 5, "b_addr": 0}
    script = [
        {"writes": {"a": {"valid": 1, "write": write}, "b": stop}, "step": step},
        {"writes": {"a": stop, "b": stop}},
    ]
    (a,) = play(feeder, script, "a", tail=6)
    assert [cycle[2] for cycle in a] == [[0, 0]] * 8  # the third row is in the next segment
    # The second row is one PE below the top, the first row two.
    assert [cycle[1] for cycle in a] == [[0, 0]] * 4 + [[3, 4]] * 4
    assert [cycle[0] for cycle in a] == [[0, 0]] * 5 + [[1, 2]] * 3
