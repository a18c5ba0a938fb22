"""Passes that overlap: each cycle of a token, with every read, every write and port B."""

import itertools
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from language_programs import SDRAM_CORE, SHAPE, program_of, quantized

from weft.golden.language import Shape
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import last_step, pass_cycles
from weft.language_core.descriptors import (
    Blocks,
    Factor,
    Kind,
    Operand,
    OutPlace,
    Pass,
    Reduction,
    Transfer,
)
from weft.language_core.latencies import (
    DSP_MULTIPLIER,
    LANES_OUT,
    MEMORY_READ,
    PARAMETER_ISSUE,
    PORT_B,
    READ,
    TABLE_OUT,
    TREE,
)
from weft.models.language_core.overlap import overlapped

SHAPES = [
    SHAPE,
    Shape(dim=64, layers=1, heads=8, kv_heads=4, hidden=20, vocab=24, positions=32),
    Shape(dim=48, layers=1, heads=3, kv_heads=1, hidden=64, vocab=16, positions=32),
    Shape(dim=64, layers=1, heads=2, kv_heads=2, hidden=33, vocab=16, positions=48),
    Shape(dim=16, layers=1, heads=1, kv_heads=1, hidden=8, vocab=8, positions=16),
]
EACH_SHAPE = pytest.mark.parametrize("shape", [
    pytest.param(
        shape, id=f"dim {shape.dim}, heads of {shape.head_dim}",
        marks=() if number in (1, 4) else pytest.mark.slow,
    ) for number, shape in enumerate(SHAPES)
])
STORIES = Shape(dim=64, layers=5, heads=8, kv_heads=4, hidden=172, vocab=512, positions=256)


def _steps(each, position):
    """The cycle of each step, its addresses in both memories, and whether its tile ends."""
    counts = [getattr(each, f"count_{n}") for n in range(5)]
    for n in range(2):
        if kind := getattr(each, f"blocks_{n}"):
            counts[n] = position // (8 if kind == Blocks.EIGHTHS else 16) + 1
    product = each.kind == Kind.PRODUCT
    slow = counts[0] == 1 if product else each.out_place >= OutPlace.KEYS
    steps = itertools.product(*(range(count) for count in reversed(counts)))
    for number, indices in enumerate(steps):
        operand, main = (
            getattr(each, name) + sum(
                n * getattr(each, f"{name}_{level}")
                for level, n in enumerate(reversed(indices))
            ) for name in ("operand", "main")
        )
        yield number * (2 if slow else 1), operand, main, indices[-1] == counts[0] - 1


class _Token:
    """The cycles of all passes of a token; ``faults`` are the rules that are broken, by pass."""

    def __init__(self, passes, position):
        self.position = position
        self.ready = {}  # when the latest write of a place can be read
        self.used = {}  # the latest read of a place
        self.port_b = defaultdict(list)  # passes that use it in a cycle
        self.faults = []
        now, last_group, kept = 0, -1000, -1000
        for number, each in enumerate(passes):
            self.number = number
            if each.kind == Kind.SCALAR:
                last_group, kept = -1000, -1000
            else:
                self._rule("job of the steps", now - 1 >= kept)
                product = each.kind == Kind.PRODUCT
                fed = READ + (DSP_MULTIPLIER + TREE + 1 if product else 0)
                kept = now + max(fed, PORT_B + 1)  # its fields are copied, the next one is there
                self._rule("job of the groups", now + fed - 1 > last_group)
                self.port_b[now - 1].append(number)  # the next descriptor
                last_group = self._pass(each, now, fed)
            now += pass_cycles(replace(each, transfer=Transfer.NONE), position)
        self.faults += [
            (users[0], "port B") for users in self.port_b.values() if len(users) > 1
        ]

    def _rule(self, name, kept):
        if not kept:
            self.faults.append((self.number, name))

    def _read(self, cycle, *place):
        self._rule(place[0], self.ready.get(place, -1000) <= cycle)
        self.used[place] = cycle

    def _write(self, ready, *place):
        self._rule("overwritten", self.used.get(place, -1000) < ready - 1)
        self.ready[place] = ready

    def _pass(self, each, start, fed):
        """Reads and writes of a pass; the entry of its last group."""
        product, entries = each.kind == Kind.PRODUCT, []
        for at, operand, main, ends in _steps(each, self.position):
            step = start + at
            for place in range(operand, operand + 4) if product else [operand]:
                self._read(step + 1, "activations", place)
            if product:
                self._read(step + 1, "main", main)
                entries += [step + fed, step + fed + 1] if ends else []
            else:
                entries.append(step + fed)
        inner = 2 if product else each.count_0
        middle = len(entries) // each.heads // inner
        for number, entry in enumerate(entries):
            head = number // inner // middle
            self._group(each, number, head, (
                number % inner, number // inner % middle, head,
            ), entry, number == (head + 1) * inner * middle - 1)
        return entries[-1]

    def _group(self, each, number, head, indices, entry, ends):
        result = entry + LANES_OUT
        out = each.out + sum(
            n * getattr(each, f"out_{level}") for level, n in enumerate(indices)
        )
        if each.lane_operand in (Operand.EXP, Operand.DISTANCE):
            self._read(entry + 1, "maximum", head)
        if each.factor == Factor.SIDE:
            self._read(entry + TABLE_OUT - MEMORY_READ, "side", each.side + number)
        if each.residual:
            self._read(result - 2 - MEMORY_READ, "side", each.side + number)
        if each.factor == Factor.PARAMETER or each.lane_operand in (Operand.PAIR, Operand.BYTE):
            self.port_b[entry + PARAMETER_ISSUE].append(self.number)
        if each.out_place >= OutPlace.KEYS:
            out += self.position // (8 if each.out_place == OutPlace.KEYS else 16)
            self.port_b[result + 1].append(self.number)
            self._write(result + 1 + PORT_B - READ + 2, "main", out)
        else:
            self._write(result + 1, "activations", out)
        if each.out_place == OutPlace.BOTH:
            self._write(result + 1, "side", each.side + number)
        if each.reduction == Reduction.MAXIMUM and ends:
            self._write(result + 3, "maximum", head)


def _positions(count):
    return [n for n in range(count) if n % 8 in (0, 7)]


@EACH_SHAPE
@pytest.mark.parametrize("config, least", [(LanguageCoreConfig(), 10), (SDRAM_CORE, 3)], ids=[
    "alone", "sdram",
])
def test_nothing_is_read_before_it_is_written(shape, config, least):
    program = program_of(quantized(shape), config=config)
    for passes in (program.passes, program.sampler):
        for position in _positions(shape.positions):
            assert _Token(passes, position).faults == []
    assert sum(each.follow > 0 for each in program.passes) >= least * shape.layers


def test_a_model_of_the_shape_of_stories260k():
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    for position in (0, 8, 16, 127, 255):
        assert _Token(program.passes, position).faults == []


@EACH_SHAPE
def test_no_pass_could_start_earlier(shape):
    """A cycle earlier, a rule is broken at a position; and passes save five cycles on average."""
    program = program_of(quantized(shape), config=LanguageCoreConfig())
    rules, saved = Counter(), 0
    for number, each in enumerate(program.passes):
        if not each.follow:
            continue
        saved += last_step(each) - each.follow
        if each.follow == 4:
            continue  # the control is not faster
        early = list(program.passes)
        early[number] = replace(each, follow=each.follow - 1)
        faults = {
            rule for position in _positions(shape.positions)
            for place, rule in _Token(early, position).faults
        }
        assert faults, number
        rules.update(faults)
    assert {"activations", "port B"} <= {*rules}
    assert saved > 5 * sum(each.follow > 0 for each in program.passes)


_APPEND = {"kind": Kind.VECTOR, "operand_0": 1, "out": 40, "out_place": OutPlace.KEYS}
_SCALED = {"kind": Kind.VECTOR, "factor": Factor.PARAMETER, "operand": 64, "operand_0": 1}


@pytest.mark.parametrize("count", [1, 2, 4, 8, 12])
@pytest.mark.parametrize("following, rules", [
    (_SCALED | {"count_0": 3}, {"port B"}), (_SCALED | {"count_0": 16}, {"port B"}),
    ({"kind": Kind.PRODUCT, "count_0": 3, "main": 40, "operand": 64}, {"main", "port B"}),
    ({"kind": Kind.PRODUCT, "main": 41, "operand": 64}, {"port B"}),
])
def test_a_pass_after_one_that_stores_keys(count, following, rules):
    """A parameter is read in no cycle of a store; a key is read after its store."""
    passes = [Pass(**_APPEND, count_0=count), Pass(**following, out=100, out_0=1)]
    append, last = overlapped(passes, 16)
    assert _Token([append, last], 0).faults == []
    early = _Token([replace(append, follow=(append.follow or last_step(append)) - 1), last], 0)
    assert append.follow == 4 or {rule for _, rule in early.faults} <= rules | {
        "job of the steps", "job of the groups",
    }
    assert append.follow == 4 or early.faults


@pytest.mark.parametrize("first, second", [
    *(({"reduction": each}, {}) for each in Reduction if each > Reduction.MAXIMUM),
    ({"residual": 1}, {}), ({"last": 1}, {}), ({}, {"emitting": 1}),
    ({"kind": Kind.SCALAR}, {}), ({}, {"kind": Kind.SCALAR}),
    ({"kind": Kind.PRODUCT, "transfer": Transfer.STREAM}, {}),
    ({}, {"kind": Kind.PRODUCT, "transfer": Transfer.STREAM}),
])
def test_passes_that_wait(first, second):
    """For what no pass has stored, or when the steps of one come, or the control needs the end."""
    one, other = ({"kind": Kind.VECTOR, "count_0": 9, **each} for each in (first, second))
    plain = {"kind": Kind.VECTOR, "count_0": 9}
    assert [each.follow for each in overlapped([Pass(**plain), Pass(**plain)], 16)] == [21, 0]
    passes = overlapped([Pass(**one), Pass(**other)], 16)
    assert [each.follow for each in passes] == [0, 0]


def test_a_list_has_no_follow_before():
    with pytest.raises(ValueError, match="passes must have no follow"):
        overlapped([Pass(kind=Kind.VECTOR, follow=4)], 16)
    assert overlapped([], 16) == []
