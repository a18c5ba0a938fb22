"""Write ``docs/cell-mutants.md``: one-line mutants of the BF16 MAC cell and their detection.

    make cell-mutants

Exit code 1 if a mutant survives, or if its text is not in the source exactly once.
"""

import functools
import os
import sys
import types
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from verif.mac_cell import LONG_SUMS, VECTORS, check, executable

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "cell-mutants.md"
# The sources of the MAC cell; each imports the ones before it.
SOURCES = ["unpacked_bf16", "unpacked_fp32", "bf16"]
HEAD = """\
# Mutants of the BF16 MAC cell

Each of the {count} mutants changes one line of the BF16 MAC cell. The table gives the effect of the
change, the first class of vectors (`verif.mac_cell`) that detects it, and the first vector that
does. The cell `flush` flushes subnormal numbers, the cell `keep` keeps them. `make cell-mutants`
writes this page, and fails if a mutant survives.

| stage | mutant | cell | detected by | first vector |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class CellMutant:
    """A change of one line of the MAC cell.

    Attributes
    ----------
    stage : str
    what : str
        The effect of the change, in words.
    source : str
        One of SOURCES.
    old, new : str
        A text that is in the source exactly once, in one line, and its replacement.
    flush : bool
        Whether the mutant is one of the cell that flushes subnormal numbers.
    """

    stage: str
    what: str
    source: str
    old: str
    new: str
    flush: bool = False

    @property
    def cell(self):
        """The name of the cell, for the table."""
        return "flush" if self.flush else "keep"


def table(source, stage, *rows, flush=False):
    """Mutants of one stage, of rows (what, old, new)."""
    return [CellMutant(stage, what, source, old, new, flush) for what, old, new in rows]


MUTANTS = [
    *table(
        "unpacked_bf16", "decode a, b",
        ("a subnormal number has half its value", ".eq(bit - 6)", ".eq(bit - 7)"),
        ("a subnormal number shifts one place too few", "(7 - bit)", "(6 - bit)"),
        ("the largest subnormal numbers are not normalized", "range(7)", "range(6)"),
        ("a signalling NaN is an infinity", "top & fraction.any()", "top & fraction[6]"),
        ("a NaN is not marked as special", "special.eq(top)", "special.eq(top & ~fraction.any())"),
    ),
    *table(
        "unpacked_bf16", "decode a, b",
        ("a subnormal number is not flushed", "tiny if self.FLUSH else tiny", "tiny"),
        flush=True,
    ),
    *table(
        "unpacked_fp32", "decode c",
        ("-inf is +inf", "sign.eq(sign)", "sign.eq(sign & ~top)"),
        ("a signalling NaN is an infinity", "top & fraction.any()", "top & fraction[22]"),
        ("infinity is not marked as special",
         "special.eq(top)", "special.eq(top & fraction.any())"),
    ),
    *table(
        "unpacked_fp32", "decode c",
        ("a subnormal start is not flushed", "if self.FLUSH", "if False"),
        flush=True,
    ),
    *table(
        "bf16", "multiply",
        ("a has no hidden bit", "Cat(a.fraction, Const(1, 1))", "a.fraction"),
        ("b has no hidden bit", "Cat(b.fraction, Const(1, 1))", "b.fraction"),
        ("the sign of b is ignored", "a.sign ^ b.sign", "a.sign"),
        ("the product has half its value", "f.exponent - 126", "f.exponent - 127"),
        ("a zero a is ignored", "zero=a.zero | b.zero", "zero=b.zero"),
        ("a bubble adds +0", "(a.sign ^ b.sign) | ~self.en", "(a.sign ^ b.sign) & self.en"),
        ("a bubble adds its product", "b.zero | ~self.en", "b.zero"),
        ("a bubble can be infinite", "special=(a.special | b.special) & self.en",
         "special=a.special | b.special"),
        ("zero times infinity is infinite", " | (a.zero & b.special)", ""),
        ("infinity times zero is infinite", " | (a.special & b.zero)", ""),
        ("a NaN b is an infinity", "a.nan | b.nan", "a.nan"),
    ),
    *table(
        "bf16", "start",
        ("clear is ignored", "Mux(self.clear, 0, value)", "value"),
        ("preload is ignored", "Mux(self.preload, self.init[name], ", "Mux(0, 0, "),
        ("a subnormal sum has a hidden bit", "normal.eq(start.exponent.any())", "normal.eq(1)"),
        ("a subnormal sum has the exponent 0", "start.exponent | ~normal", "start.exponent"),
        ("the exponent 255 is not infinite", " | acc.exponent[:8].all()", ""),
        ("the exponent 256 is 0", " | acc.exponent[8]", ""),
        ("a sum that overflowed is not infinite in the next step",
         '"special": special', '"special": acc.special'),
        ("the fraction of an infinity is not cleared", "acc.fraction[:22] & ~special.replicate(22)",
         "acc.fraction[:22]"),
        ("a NaN is signalling", " | acc.nan", ""),
        ("the sign of a NaN is not cleared", "acc.sign & ~acc.nan", "acc.sign"),
        ("a NaN start is ignored", "nan=start.nan | p.nan", "nan=p.nan"),
    ),
    *table(
        "bf16", "swap",
        ("a zero product can be the larger number", "(d.difference < 0) & ~d.zero",
         "d.difference < 0"),
        ("the smaller number is taken as the larger one", "d.difference < 0", "d.difference > 0"),
        ("a sum shifts one place too far", "d.difference[:5] ^ swap.replicate(5)",
         "(d.difference ^ swap.replicate(5)) + swap"),
        ("the product has twice its value", "product << 1", "product << 2"),
        ("a far sum is not detected if the product is larger",
         "d.difference[5:9] ^ d.difference[9].replicate(4)",
         "d.difference[5:9] & ~d.difference[9].replicate(4)"),
        ("a distance of 32 is not detected",
         "(d.difference[5:9] ^ d.difference[9].replicate(4)).any()",
         "(d.difference[6:9] ^ d.difference[9].replicate(3)).any()"),
        ("a zero product is added if its exponent is near", ".any() | d.zero", ".any()"),
        ("a far number is not sticky", "far | (shift[4]", "(shift[4]"),
        ("a zero product is sticky", "sticky=~d.zero & ", "sticky="),
        ("bits cut off by the shift by 16 are not sticky", " | (shift[4] & y[:16].any())", ""),
        ("one bit cut off by the shift by 16 is not sticky", "y[:16].any()", "y[:15].any()"),
        ("the exponent is always the sum's",
         "exponent=Mux(swap, d.product_exponent, d.sum_exponent)",
         "exponent=d.sum_exponent"),
        ("an infinite sum has the product's sign", "Mux(special, d.sum_special, ~swap)", "~swap"),
        ("inf - inf is inf", " | (d.sum_special & d.product_special & subtract)", ""),
        ("inf + inf is NaN", "d.product_special & subtract", "d.product_special"),
    ),
    *table(
        "bf16", "align",
        ("bits cut off are not sticky", "(s.shift[level] & small[:places].any())", "0"),
        ("bits that are not cut off are sticky", "s.shift[level] & small[:places].any()",
         "small[:places].any()"),
        ("one of the bits cut off is not sticky", "small[:places].any()", "small[1:places].any()"),
        ("each shift is one place too short",
         "small >> places, small", "small >> (places - 1), small"),
        ("the shift by 2 is missing", "in (3, 2, 1)", "in (3, 2)"),
    ),
    *table(
        "bf16", "add",
        ("the last bit cut off is not sticky", " | (a.shift & a.small[0])", ""),
        ("the sticky bit is ignored", "Cat(sticky, Mux", "Cat(Const(0, 1), Mux"),
        ("the shift by 1 is missing", "Mux(a.shift, a.small >> 1, a.small)", "a.small"),
        ("a difference is too small by one", "Cat(a.subtract, small", "Cat(Const(0, 1), small"),
        ("a difference is a sum", "small ^ a.subtract.replicate(28)", "small"),
        ("a sum loses its carry", "carry ^ a.subtract)", "a.subtract & ~carry)"),
        ("a difference has a carry", "carry ^ a.subtract)", "carry)"),
        ("no difference is negative", "negative=a.subtract & ~carry", "negative=Const(0, 1)"),
    ),
    *table(
        "bf16", "normalize",
        ("exponents from 16 on do not limit the shift", "t.exponent[5:]", "t.exponent[4:]"),
        ("the exponent does not limit the shift",
         "zeros & (~limited | n.exponent[level])", "zeros"),
        ("the limit applies to all later shifts", "limited & (shift == n.exponent[level])",
         "limited"),
        ("the limit applies to one shift only", "limited & (shift == n.exponent[level])",
         "Const(0, 1)"),
        ("zeros are shifted into a negative number", "n.negative.replicate(places) if",
         "Const(0, places) if"),
        ("a negative number is not inverted", "value ^ n.negative.replicate(_TOTAL)", "value"),
        ("the shift by 8 uses bits from before the shift by 16",
         "zeros(total[5:13])", "zeros(total[21:])"),
        ("leading zeros of a negative number are not detected",
         "Mux(t.negative, bits.all(), ~bits.any())",
         "~bits.any()"),
        ("a carry is shifted out", "zeros(total[13:])", "zeros(total[13:28])"),
        ("the shift by 16 is a shift by 8", "self._shift_left(m, 4, t", "self._shift_left(m, 3, t"),
        ("the shifts by 8 and 4 are swapped in the exponent",
         "Cat(by4, by8, n.by16)", "Cat(by8, by4, n.by16)"),
        ("the shift by 1 is missing", "self._shift_left(m, 0, n, value, limited)",
         "(value, limited, Const(0, 1))"),
        ("a difference of 0 is -0", " & ~(is_zero & t.subtract)", ""),
        ("-0 and -0 are +0", "~(is_zero & t.subtract)", "~is_zero"),
        ("a negative difference has the wrong sign", "(t.sign ^ t.negative) &", "t.sign &"),
        ("an infinity is always positive", "Mux(t.special, t.sign, ", "Mux(t.special, 0, "),
    ),
    *table(
        "bf16", "round",
        ("ties go up", "r.guard & (r.rest | last)", "r.guard"),
        ("ties go down", "r.guard & (r.rest | last)", "r.guard & r.rest"),
        ("ties go to odd", "r.guard & (r.rest | last)", "r.guard & (r.rest | ~last)"),
        ("nothing is rounded up",
         "Cat(increment, Const(0, 22), change)", "Cat(Const(0, 23), change)"),
        ("ties of a negative number go down", "r.guard | (~r.rest & last)", "r.guard"),
        ("ties of a negative number go up", "r.guard | (~r.rest & last)", "r.guard | ~r.rest"),
        ("the sticky bits of a negative number are not inverted",
         "Mux(n.negative, ~rest.all(), rest.any())",
         "rest.any()"),
        ("one sticky bit is ignored", "rest = value[:_EXTRA]", "rest = value[1:_EXTRA]"),
        ("a subnormal sum has the exponent 1", "r.first - r.shift", "1 - r.shift"),
        ("the exponent of a zero is not cleared", "with m.If(r.is_zero)", "with m.If(0)"),
        ("the exponent wraps at overflow", "total[23:32]", "total[23:31]"),
    ),
    *table(
        "bf16", "round",
        ("a subnormal sum is not flushed", "if self.FLUSH", "if False"),
        flush=True,
    ),
]


def text(source) -> str:
    """The text of a source of the MAC cell."""
    return Path(find_spec(f"weft.hw.arith.{source}").origin).read_text(encoding="utf-8")


def mutated(mutant):
    """The class of the MAC cell with the mutant's change."""
    with patch.dict(sys.modules):
        for source in SOURCES:
            code = text(source)
            if source == mutant.source:
                code = code.replace(mutant.old, mutant.new)
            module = types.ModuleType(f"weft.hw.arith.{source}")
            sys.modules[module.__name__] = module
            exec(compile(code, f"{source}.py", "exec"), vars(module))
    return module.FlushingBf16Mac if mutant.flush else module.Bf16Mac


def detection(mutant, classes):
    """The first class of vectors that detects a mutant, and the vector; None if it survives."""
    cell = executable(mutated(mutant))
    for name, make in classes.items():
        mismatch = check(cell, make(), flush=mutant.flush)
        if mismatch is not None:
            return name, mismatch
    return None


def misplaced(mutants) -> list[str]:
    """A message for each mutant whose text is not in its source exactly once."""
    return [
        f"{mutant.old!r} must be in {mutant.source}.py once, not {count} times"
        for mutant in mutants if (count := text(mutant.source).count(mutant.old)) != 1
    ]


def main(mutants=MUTANTS, path=PATH) -> int:
    os.environ.setdefault("WEFT_BUILD", str(ROOT / "build"))
    problems = misplaced(mutants)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 1
    classes = {name: functools.cache(make) for name, make in {**VECTORS, **LONG_SUMS}.items()}
    width = max(len(mutant.what) for mutant in mutants)
    rows, survivors = [], 0
    for number, mutant in enumerate(mutants, 1):
        detected = detection(mutant, classes)
        survivors += detected is None
        name, vector = detected or ("NONE", "it survives")
        rows.append(f"| {mutant.stage} | {mutant.what} | {mutant.cell} | {name} | {vector} |\n")
        print(f"{number:3} of {len(mutants)}  {mutant.stage:10} {mutant.what:{width}}  {name}")
        sys.stdout.flush()
    path.write_text(HEAD.format(count=len(mutants)) + "".join(rows), encoding="utf-8")
    print(f"{path}: {len(mutants) - survivors} of {len(mutants)} are detected")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
