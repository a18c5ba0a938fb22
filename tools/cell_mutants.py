"""Write ``docs/cell-mutants.md``: the BF16 leaf broken a line at a time, and which vectors see it.

    make cell-mutants

Fails where a break is seen by none, or where its line is not there, once.
"""

import functools
import os
import sys
import types
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from weft.sim.leaf import LOOPS, VECTORS, check, program

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "cell-mutants.md"
# What is broken, each importing those before it.
SOURCES = ["unpacked_bf16", "unpacked_fp32", "bf16"]
HEAD = """\
# Mutants

The BF16 leaf with one line changed, {count} times: what the change does to it, the first class of
vectors (`weft.sim.leaf`) that sees it, and the first vector that does. `make cell-mutants` writes
this page, and fails where one survives. The leaf `flush` is the one that flushes subnormal numbers.

| stage | mutant | leaf | seen by | the first vector |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class CellMutant:
    """A line of the leaf that is wrong.

    Attributes
    ----------
    stage : str
    what : str
        In words.
    source : str
        One of SOURCES.
    old, new : str
        A text that is there once, in one line, and what takes its place.
    flush : bool
        In which of the leaves.
    """

    stage: str
    what: str
    source: str
    old: str
    new: str
    flush: bool = False

    @property
    def leaf(self):
        return "flush" if self.flush else "keep"


def table(source, stage, *rows, flush=False):
    """Mutants of one stage, of rows (what, old, new)."""
    return [CellMutant(stage, what, source, old, new, flush) for what, old, new in rows]


MUTANTS = [
    *table(
        "unpacked_bf16", "decode a, b",
        ("a subnormal number is half as much", ".eq(bit - 6)", ".eq(bit - 7)"),
        ("a subnormal number moves a place too little", "(7 - bit)", "(6 - bit)"),
        ("the greatest subnormal numbers stay as they are", "range(7)", "range(6)"),
        ("a signalling NaN is an infinity", "top & fraction.any()", "top & fraction[6]"),
        ("a NaN is a number too", "special.eq(top)", "special.eq(top & ~fraction.any())"),
    ),
    *table(
        "unpacked_bf16", "decode a, b",
        ("a subnormal number is none", "tiny if self.FLUSH else tiny", "tiny"),
        flush=True,
    ),
    *table(
        "unpacked_fp32", "decode c",
        ("-inf is +inf", "sign.eq(sign)", "sign.eq(sign & ~top)"),
        ("a signalling NaN is an infinity", "top & fraction.any()", "top & fraction[22]"),
        ("infinity is a number", "special.eq(top)", "special.eq(top & fraction.any())"),
    ),
    *table(
        "unpacked_fp32", "decode c",
        ("a subnormal start stays", "if self.FLUSH", "if False"),
        flush=True,
    ),
    *table(
        "bf16", "multiply",
        ("the hidden one of a is forgotten", "Cat(a.fraction, Const(1, 1))", "a.fraction"),
        ("the hidden one of b is forgotten", "Cat(b.fraction, Const(1, 1))", "b.fraction"),
        ("the sign of b is forgotten", "a.sign ^ b.sign", "a.sign"),
        ("half the product", "f.exponent - 126", "f.exponent - 127"),
        ("a zero a does not count", "zero=a.zero | b.zero", "zero=b.zero"),
        ("a bubble adds +0", "(a.sign ^ b.sign) | ~self.en", "(a.sign ^ b.sign) & self.en"),
        ("a bubble adds its product", "b.zero | ~self.en", "b.zero"),
        ("a bubble may be infinite", "special=(a.special | b.special) & self.en",
         "special=a.special | b.special"),
        ("zero times infinity is infinite", " | (a.zero & b.special)", ""),
        ("infinity times zero is infinite", " | (a.special & b.zero)", ""),
        ("a NaN b is an infinity", "a.nan | b.nan", "a.nan"),
    ),
    *table(
        "bf16", "start",
        ("clear is forgotten", "Mux(self.clear, 0, value)", "value"),
        ("preload is forgotten", "Mux(self.preload, self.init[name], ", "Mux(0, 0, "),
        ("a subnormal sum has a hidden one", "normal.eq(start.exponent.any())", "normal.eq(1)"),
        ("a subnormal sum has the exponent 0", "start.exponent | ~normal", "start.exponent"),
        ("the exponent 255 is a number", " | acc.exponent[:8].all()", ""),
        ("the exponent 256 is 0", " | acc.exponent[8]", ""),
        ("a sum that overflowed goes on", '"special": special', '"special": acc.special'),
        ("an infinity has a fraction", "acc.fraction[:22] & ~special.replicate(22)",
         "acc.fraction[:22]"),
        ("a NaN is signalling", " | acc.nan", ""),
        ("a NaN has a sign", "acc.sign & ~acc.nan", "acc.sign"),
        ("a NaN is forgotten", "nan=start.nan | p.nan", "nan=p.nan"),
    ),
    *table(
        "bf16", "swap",
        ("a zero product may be the greater", "(d.difference < 0) & ~d.zero",
         "d.difference < 0"),
        ("the smaller one counts as the greater", "d.difference < 0", "d.difference > 0"),
        ("a sum moves a place too far", "d.difference[:5] ^ swap.replicate(5)",
         "(d.difference ^ swap.replicate(5)) + swap"),
        ("a product is twice as much", "product << 1", "product << 2"),
        ("far is near when the product is greater",
         "d.difference[5:9] ^ d.difference[9].replicate(4)",
         "d.difference[5:9] & ~d.difference[9].replicate(4)"),
        ("32 places are none", "(d.difference[5:9] ^ d.difference[9].replicate(4)).any()",
         "(d.difference[6:9] ^ d.difference[9].replicate(3)).any()"),
        ("a zero product counts when near", ".any() | d.zero", ".any()"),
        ("what is far away is nothing", "far | (shift[4]", "(shift[4]"),
        ("a zero product is more than nothing", "sticky=~d.zero & ", "sticky="),
        ("what 16 places cut off is nothing", " | (shift[4] & y[:16].any())", ""),
        ("16 places lose one of their bits", "y[:16].any()", "y[:15].any()"),
        ("the exponent is the sum's", "exponent=Mux(swap, d.product_exponent, d.sum_exponent)",
         "exponent=d.sum_exponent"),
        ("an infinite sum has the product's sign", "Mux(special, d.sum_special, ~swap)", "~swap"),
        ("inf - inf is inf", " | (d.sum_special & d.product_special & subtract)", ""),
        ("inf + inf is NaN", "d.product_special & subtract", "d.product_special"),
    ),
    *table(
        "bf16", "align",
        ("what is cut off is nothing", "(s.shift[level] & small[:places].any())", "0"),
        ("what stays is cut off too", "s.shift[level] & small[:places].any()",
         "small[:places].any()"),
        ("one bit of what is cut off is nothing", "small[:places].any()", "small[1:places].any()"),
        ("a place too little", "small >> places, small", "small >> (places - 1), small"),
        ("2 places are forgotten", "in (3, 2, 1)", "in (3, 2)"),
    ),
    *table(
        "bf16", "add",
        ("the last bit cut off is nothing", " | (a.shift & a.small[0])", ""),
        ("all that was cut off is nothing", "Cat(sticky, Mux", "Cat(Const(0, 1), Mux"),
        ("the last place is not moved", "Mux(a.shift, a.small >> 1, a.small)", "a.small"),
        ("a difference is one less", "Cat(a.subtract, small", "Cat(Const(0, 1), small"),
        ("a difference is a sum", "small ^ a.subtract.replicate(28)", "small"),
        ("a sum loses its carry", "carry ^ a.subtract)", "a.subtract & ~carry)"),
        ("a difference has a carry", "carry ^ a.subtract)", "carry)"),
        ("no difference is negative", "negative=a.subtract & ~carry", "negative=Const(0, 1)"),
    ),
    *table(
        "bf16", "normalize",
        ("exponents from 16 on are never too small", "t.exponent[5:]", "t.exponent[4:]"),
        ("exponents are never too small", "zeros & (~limited | n.exponent[level])", "zeros"),
        ("one step too small is too small for all", "limited & (shift == n.exponent[level])",
         "limited"),
        ("exponents are forgotten after a step", "limited & (shift == n.exponent[level])",
         "Const(0, 1)"),
        ("zeros come in below a negative one", "n.negative.replicate(places) if",
         "Const(0, places) if"),
        ("a negative one is not inverted", "value ^ n.negative.replicate(_TOTAL)", "value"),
        ("what 16 places bring up is not looked at", "zeros(total[5:13])", "zeros(total[21:])"),
        ("zeros of a negative one are ones", "Mux(t.negative, bits.all(), ~bits.any())",
         "~bits.any()"),
        ("a carry is moved out", "zeros(total[13:])", "zeros(total[13:28])"),
        ("16 places are 8", "self._shift_left(m, 4, t", "self._shift_left(m, 3, t"),
        ("8 and 4 places are mixed up", "Cat(by4, by8, n.by16)", "Cat(by8, by4, n.by16)"),
        ("the last place is not moved", "self._shift_left(m, 0, n, value, limited)",
         "(value, limited, Const(0, 1))"),
        ("a difference of nothing is -0", " & ~(is_zero & t.subtract)", ""),
        ("-0 and -0 are +0", "~(is_zero & t.subtract)", "~is_zero"),
        ("a negative difference is positive", "(t.sign ^ t.negative) &", "t.sign &"),
        ("an infinity loses its sign", "Mux(t.special, t.sign, ", "Mux(t.special, 0, "),
    ),
    *table(
        "bf16", "round",
        ("ties go up", "r.guard & (r.rest | last)", "r.guard"),
        ("ties go down", "r.guard & (r.rest | last)", "r.guard & r.rest"),
        ("ties go to odd", "r.guard & (r.rest | last)", "r.guard & (r.rest | ~last)"),
        ("nothing goes up", "Cat(increment, Const(0, 22), change)", "Cat(Const(0, 23), change)"),
        ("ties of a negative one go down", "r.guard | (~r.rest & last)", "r.guard"),
        ("ties of a negative one go up", "r.guard | (~r.rest & last)", "r.guard | ~r.rest"),
        ("the rest of a negative one is not inverted", "Mux(n.negative, ~rest.all(), rest.any())",
         "rest.any()"),
        ("one bit of the rest is forgotten", "rest = value[:_EXTRA]", "rest = value[1:_EXTRA]"),
        ("a subnormal sum has the exponent 1", "r.first - r.shift", "1 - r.shift"),
        ("nothing has an exponent", "with m.If(r.is_zero)", "with m.If(0)"),
        ("what overflows starts anew", "total[23:32]", "total[23:31]"),
    ),
    *table(
        "bf16", "round",
        ("a subnormal sum stays", "if self.FLUSH", "if False"),
        flush=True,
    ),
]


def text(source) -> str:
    """A source of the leaf."""
    return Path(find_spec(f"weft.hw.arith.{source}").origin).read_text(encoding="utf-8")


def broken(mutant):
    """The leaf, of sources of which one has the mutant's line."""
    with patch.dict(sys.modules):
        for source in SOURCES:
            code = text(source)
            if source == mutant.source:
                code = code.replace(mutant.old, mutant.new)
            module = types.ModuleType(f"weft.hw.arith.{source}")
            sys.modules[module.__name__] = module
            exec(compile(code, f"{source}.py", "exec"), vars(module))
    return module.FlushingBf16Mac if mutant.flush else module.Bf16Mac


def seen(mutant, classes):
    """The first class of vectors that sees a mutant, and the vector; None where none does."""
    leaf = program(broken(mutant))
    for name, make in classes.items():
        mismatch = check(leaf, make(), flush=mutant.flush)
        if mismatch is not None:
            return name, mismatch
    return None


def lost(mutants) -> list[str]:
    """What is wrong with the table: lines that are not in their source, once."""
    return [
        f"{mutant.old!r} must be in {mutant.source}.py once, not {count} times"
        for mutant in mutants if (count := text(mutant.source).count(mutant.old)) != 1
    ]


def main(mutants=MUTANTS, path=PATH) -> int:
    os.environ.setdefault("WEFT_BUILD", str(ROOT / "build"))
    problems = lost(mutants)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 1
    classes = {name: functools.cache(make) for name, make in {**VECTORS, **LOOPS}.items()}
    wide = max(len(mutant.what) for mutant in mutants)
    rows, survivors = [], 0
    for number, mutant in enumerate(mutants, 1):
        found = seen(mutant, classes)
        survivors += found is None
        name, vector = found or ("NONE", "it survives")
        rows.append(f"| {mutant.stage} | {mutant.what} | {mutant.leaf} | {name} | {vector} |\n")
        print(f"{number:3} of {len(mutants)}  {mutant.stage:10} {mutant.what:{wide}}  {name}")
        sys.stdout.flush()
    path.write_text(HEAD.format(count=len(mutants)) + "".join(rows), encoding="utf-8")
    print(f"{path}: {len(mutants) - survivors} of {len(mutants)} are seen")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
