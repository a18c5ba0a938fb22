"""The digest of a design: equal for renamed and rearranged designs, else different."""

import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, IOPort, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.boards.bitstream import prepare
from weft.boards.catalog import BOARDS
from weft.boards.design_digest import design_digest
from weft.boards.toolchain import to_rtlil
from weft.designs import replace

BASE = """
x = Signal(8, init=5, name="x")
y = Signal(8, name="y")
kind = Signal(2, name="kind")
m.d.comb += kind.eq(self.a[:2] + 1)
m.submodules.store = store = Memory(shape=8, depth=8, init=[1, 2, 3])
read, write = store.read_port(), store.write_port()
m.d.comb += read.addr.eq(x[:3])
m.d.comb += write.addr.eq(y[:3])
m.d.comb += write.data.eq(self.a)
m.d.comb += write.en.eq(self.go)
with m.If(self.go):
    m.d.sync += x.eq(x + self.a)
    m.d.sync += y.eq(y - 3)
with m.Elif(x == y):
    m.d.sync += x.eq(self.b)
with m.Switch(kind):
    with m.Case(0):
        m.d.comb += self.z.eq(x)
    with m.Case(1, 2):
        m.d.comb += self.z.eq(read.data ^ y)
block = Instance("BLOCK", p_MODE="fast", i_A=x, i_B=y, i_C=ClockSignal(), o_Y=self.w)
m.submodules.block = block
"""


class Block(wiring.Component):
    """A component whose `elaborate` is a text, so that a test can change it."""

    a: In(8)
    b: In(8)
    go: In(1)
    z: Out(8)
    w: Out(8)

    def __init__(self, text):
        super().__init__()
        self.text = text

    def elaborate(self, platform):
        m = Module()
        names = {"Signal": Signal, "Memory": Memory, "Instance": Instance, "Module": Module,
                 "ClockSignal": ClockSignal, "self": self, "m": m}
        exec(self.text, names)
        return m


def digest(text=BASE):
    return design_digest(to_rtlil(Block(text)))


def changed(*pairs):
    text = BASE
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


MOVED = """
part = Module()
m.submodules.part = part
"""


@pytest.mark.parametrize("text", [
    changed(('name="x"', 'name="sum"'), ('name="kind"', 'name="x"')),
    changed(("submodules.store", "submodules.words"), ("submodules.block", "submodules.other")),
    changed(("m.submodules.block = block", "m.submodules += block")),
    # The order of statements, of cases of one choice, and of submodules.
    changed(
        ("    m.d.sync += x.eq(x + self.a)\n    m.d.sync += y.eq(y - 3)\n",
         "    m.d.sync += y.eq(y - 3)\n    m.d.sync += x.eq(x + self.a)\n"),
        ("m.d.comb += write.data.eq(self.a)\nm.d.comb += write.en.eq(self.go)\n",
         "m.d.comb += write.en.eq(self.go)\nm.d.comb += write.data.eq(self.a)\n"),
    ),
    changed(("Case(1, 2)", "Case(2, 1)")),
    # Into a module of its own: a register, a choice, and a primitive.
    changed(
        ("    m.d.sync += y.eq(y - 3)\n", ""),
        ("block = Instance", MOVED + "with part.If(self.go):\n    part.d.sync += y.eq(y - 3)\n"
         "block = Instance"),
        ("submodules.block = block", "submodules.part.submodules.inner = block"),
    ),
    BASE + "unused = Signal(4)\nm.d.sync += unused.eq(self.b)\n",  # it drives nothing
    changed(("    m.d.sync += y.eq(y - 3)\n", ""))
    + "with m.If(self.go):\n    m.d.sync += y.eq(y - 3)\n",
])
def test_names_order_and_modules_do_not_count(text):
    assert digest(text) == digest()


@pytest.mark.parametrize("pairs", [
    [("y - 3", "y - 4")],
    [("x + self.a", "x - self.a")],
    [("y - 3", "3 - y")],
    [("Signal(8, name=\"y\")", "Signal(7, name=\"y\")")],
    [("init=[1, 2, 3]", "init=[1, 2, 4]")],
    [("init=[1, 2, 3]", "init=[1, 3, 2]")],
    [("depth=8", "depth=7")],
    [("i_A=x, i_B=y", "i_A=y, i_B=x")],
    [("x.eq(self.b)", "x.eq(self.a)")],
    [("read.addr.eq(x[:3])", "read.addr.eq(y[:3])")],
    [("read.addr.eq(x[:3])", "read.addr.eq(x[1:4])")],
    [("write.en.eq(self.go)", "write.en.eq(~self.go)")],
    [("store.read_port()", "store.read_port(domain='comb')")],
    [("init=5", "init=6")],
    [("init=5", "init=5, reset_less=True")],
    [("Case(1, 2)", "Case(1)")],
    [("Case(0)", "Case(3)")],
    [('"fast"', '"slow"')],
    [('"BLOCK"', '"OTHER"')],
    [("o_Y=self.w", "o_Z=self.w")],
    [("i_C=ClockSignal()", "i_C=~ClockSignal()")],
    [('init=5, name="x"', 'init=5, name="x", attrs={"keep": 1}')],
    [("self.z.eq(x)", "self.z.eq(late)"),
     ("with m.Switch", "late = Signal(8)\nm.d.sync += late.eq(x)\nwith m.Switch")],
    # An unused register is not there, unless it is to be kept.
    [("with m.Switch", "k = Signal(attrs={'keep': 1})\nm.d.sync += k.eq(x)\nwith m.Switch")],
], ids=str)
def test_a_change_of_the_hardware_counts(pairs):
    assert digest(changed(*pairs)) != digest()


def memory(ports):
    text = "m.submodules.store = store = Memory(shape=8, depth=8, init=[])\n" + ports
    return digest(text + "m.d.comb += [self.z.eq(r.data), r.addr.eq(self.a), u.addr.eq(self.b),"
                  " v.addr.eq(self.b), u.data.eq(self.a), v.data.eq(self.b), u.en.eq(self.go),"
                  " v.en.eq(~self.go)]\n")


REGISTERS = """
x = Signal(8, init=5, reset_less=True)
y = Signal(8, init=5, reset_less=True)
m.d.sync += x.eq(x + self.a)
m.d.sync += y.eq(y + self.a)
m.d.comb += self.z.eq(x + 1)
m.d.comb += self.w.eq(x)
"""


def test_equal_registers_count_each():
    assert digest(REGISTERS.replace("w.eq(x)", "w.eq(y)")) != digest(REGISTERS)
    assert digest(REGISTERS.replace("init=5", "init=6")) != digest(REGISTERS)


def test_a_bit_counts():
    one, two = (digest(REGISTERS.replace("w.eq(x)", f"w.eq(x[{bit}])")) for bit in (0, 1))
    assert one != two


def test_an_expression_that_is_there_twice_counts_once():
    once = REGISTERS.partition("m.d.comb")[0] + "e = Signal(9)\n"
    once += "m.d.comb += [e.eq(x + self.b), self.z.eq(e), self.w.eq(e ^ 1)]\n"
    twice = once.replace("z.eq(e)", "z.eq(x + self.b)")
    one, two = (to_rtlil(Block(text)).count("cell $add") for text in (once, twice))
    assert two == one + 1 and digest(twice) == digest(once)


@pytest.mark.parametrize("old, new", [
    ("// self.b", "// (self.b + 1)"), ("word_select(self.a, 2)", "word_select(self.b, 2)"),
    ("i_I=z", "i_I=~z"), ("o_O=u, i_P=self.a", "o_O=u, i_P=self.b"),
])
def test_cells_behind_cells(old, new):
    """Whose inputs are whole outputs of others: division, selection, and primitives in a chain."""
    text = """
    z, u = Signal(), Signal()
    m.submodules.one = Instance("CHAIN", i_I=self.go, o_O=z)
    m.submodules.two = Instance("CHAIN", i_I=z, o_O=u, i_P=self.a)
    m.d.comb += self.z.eq(self.a // self.b)
    m.d.comb += self.w.eq((self.a + self.b).word_select(self.a, 2) + u)
    """
    one, two = text.splitlines()[2:4]
    text = textwrap.dedent(text)
    assert old in text and digest(text.replace(old, new)) != digest(text)
    swapped = text.replace(one.strip(), two.strip() + "#", 1)
    swapped = swapped.replace("\n" + two.strip() + "\n", "\n" + one.strip() + "\n")
    assert digest(swapped) == digest(text)


def test_what_a_port_passes_on_counts_but_not_the_order_of_ports():
    uv, vu = ("".join(f"{name} = store.write_port()\n" for name in names) for names in ("uv", "vu"))
    first = memory(uv + "r = store.read_port(transparent_for=(u,))\n")
    assert memory(vu + "r = store.read_port(transparent_for=(u,))\n") == first
    others = {memory(uv + f"r = store.read_port(transparent_for=({ports}))\n")
              for ports in ("", "v,", "u, v")}
    assert len(others) == 3 and first not in others


def test_a_change_far_behind_a_register_counts():
    """Each stage looks like the others; only the way from the port to the loop differs."""
    def chain(tap):
        stages = "s = [self.a]\nfor _ in range(40):\n    s.append(Signal(8))\n"
        stages += "    m.d.sync += s[-1].eq(s[-2])\n"
        return digest(f"{stages}m.d.comb += self.z.eq(s[40] ^ s[{tap}])\n")

    assert len({chain(20), chain(21), chain(39)}) == 3


def test_ports_of_the_top_count():
    text = to_rtlil(Block(BASE))
    assert design_digest(text.replace("\\go", "\\run")) != design_digest(text)


def test_a_bidirectional_pin_counts():
    def found(enable, name="buffer"):
        m, a, en, z = Module(), *(Signal(name=name) for name in ("a", "en", "z"))
        pin = io.SingleEndedPort(IOPort(1, name="pin"), direction="io")
        m.submodules[name] = buffer = io.Buffer("io", pin)
        m.d.comb += [buffer.o.eq(a), buffer.oe.eq(en if enable else a), z.eq(buffer.i)]
        return design_digest(rtlil.convert(m, ports=[a, en, z, pin.io]))

    assert found(True) == found(True, name="other") != found(False)


def test_another_process_finds_the_same():
    code = f"from {Path(__file__).stem} import digest; print(digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""}, check=True,
        ).stdout.strip() for seed in ("1", "2")
    }
    assert found == {digest()}


@pytest.fixture(scope="module")
def board():
    """The smallest design of a board with one PE, in RTLIL."""
    icebreaker = BOARDS["icebreaker"]
    return prepare(icebreaker, replace(icebreaker.config, rows=1, cols=1)).rtlil


def disordered(text, random):
    """A design with other names of signals and cells, and another order in each module."""
    modules = re.findall(r"^attribute .*?^end\n", text, re.M | re.S)
    for number, module in enumerate(modules):
        head, *items, connections = module.split("\n\n")
        if connections != "end\n":
            items += [f"  {line}" for line in connections.splitlines()[:-1]]
        random.shuffle(items)
        body = "\n\n".join([head, *items, "end\n"])
        inner = re.findall(r"^  (?:wire width \d+|wire width \d+ signed) (\\\S+)$", body, re.M)
        names = {name: f"\\n{random.random()}" for name in inner}
        modules[number] = re.sub(  # but not the names of ports of cells
            r"(?<=\s)(?<!    connect )\\\S+",
            lambda found, names=names: names.get(found[0], found[0]), body,
        )
    random.shuffle(modules)
    return "\n".join(modules)


@pytest.mark.slow
def test_a_whole_design_in_another_order(board):
    text = disordered(board, random.Random(1))
    assert len(text) > len(board) / 2 and text.count("  cell ") == board.count("  cell ")
    assert design_digest(text) == design_digest(board)


def test_one_cell_of_a_whole_design_counts(board):
    kinds = sorted(set(re.findall(r"  cell (\$(?!mem)\w+)", board)))
    own = design_digest(board)
    for kind in random.Random(2).sample(kinds, 2):
        assert design_digest(board.replace(f"  cell {kind} ", "  cell $other ", 1)) != own, kind
    assert board.count("led_r_0__io") > 1
    assert design_digest(board.replace("led_r_0__io", "led_x__io")) != own


@pytest.mark.parametrize("text, message", [
    ("", "RTLIL must have one top module, not 0"),
    ("module \\top\n  sync posedge\nend\n",
     "a line of RTLIL must be one that Amaranth writes, not 'sync posedge'"),
])
def test_rejects_other_texts(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        design_digest(text)
