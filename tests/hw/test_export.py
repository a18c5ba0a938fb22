"""The exported Verilog: its ports, its bytes, and no traces of the machine that built it."""

import getpass
import re
import subprocess
import sys

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.config import Config
from weft.hw.export import to_verilog, verilog

CONFIG = Config(rows=2, cols=3, depth=2, a_words=32, b_words=32, bytes_in=8, bytes_out=4)
FIP = Config(rows=2, cols=2, depth=2, multiplier="fip", a_words=32, b_words=32, bytes_in=4)


@pytest.fixture(scope="module")
def text():
    return verilog(CONFIG)


def test_the_same_config_gives_the_same_bytes(text):
    # In another process, with another hash seed.
    program = "from weft.config import Config; from weft.hw.export import verilog; import sys;"
    program += f"sys.stdout.write(verilog({CONFIG!r}))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
    )
    assert run.stdout == text


@pytest.mark.slow
def test_another_config_gives_other_verilog(text):
    assert verilog(FIP) != text


def test_the_ports_of_the_module(text):
    [module] = re.findall(r"^module weft\(.*?^endmodule", text, re.M | re.S)
    ports = {
        name: (direction, int(high) + 1 if high else 1)
        for direction, high, name in re.findall(
            r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", module, re.M
        )
    }
    assert ports == {
        "clk": ("input", 1), "rst": ("input", 1),
        "cmd_valid": ("input", 1), "cmd_ready": ("output", 1), "cmd_data": ("input", 64),
        "cmd_abort": ("input", 1),
        "res_valid": ("output", 1), "res_ready": ("input", 1), "res_data": ("output", 32),
        "res_last": ("output", 1), "res_status": ("output", 8), "res_tag": ("output", 16),
        "reg_address": ("input", 8), "reg_data": ("output", 32),
        "activity": ("output", 6),
    }


def test_the_text_names_no_user_and_no_path(text):
    user = getpass.getuser()
    for secret in ("src=", ".py", "/home", "/tmp", "/work", f"/{user}"):
        assert secret not in text


def test_no_always_star_blocks(text):
    assert "always @*" not in text
    assert "always @(*)" not in text


def test_no_port_has_width_0(text):
    assert "[-1:0]" not in text


def test_a_model_has_no_reset_and_no_hierarchy():
    class Part(wiring.Component):
        i: In(8)
        en: In(1)
        o: Out(8)

        def elaborate(self, platform):
            m = Module()
            with m.If(self.en):
                m.d.sync += self.o.eq(self.i)
            return m

    class Parts(wiring.Component):
        i: In(8)
        en: In(1)
        o: Out(9)

        def elaborate(self, platform):
            m = Module()
            m.submodules.one, m.submodules.other = one, other = Part(), Part()
            for part in (one, other):
                m.d.comb += [part.i.eq(self.i), part.en.eq(self.en)]
            m.d.comb += self.o.eq(one.o + other.o)
            return m

    text = to_verilog(Parts(), name="parts")
    assert (text.count("\nmodule "), "rst" in text) == (3, True)
    text = to_verilog(Parts(), name="parts", model=True)
    assert (text.count("\nmodule "), text.count("always "), "rst" in text) == (1, 1, False)
    assert "if (en)" in text
