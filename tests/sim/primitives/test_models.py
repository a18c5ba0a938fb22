"""The ECP5 models against Yosys: against its models, and against its inference."""

import random
import re
import subprocess

import pytest

from verif import yosys
from weft.hw.fabrics import ecp5_primitives
from weft.sim import tools
from weft.sim.primitives import ECP5_MODELS

CARRIES = """\
read_verilog <<both
{ours}
module reference(input [8:0] i, output [2:0] o);
    CCU2C #({parameters}) cell (
        .CIN(i[0]), .A0(i[1]), .B0(i[2]), .C0(i[3]), .D0(i[4]), .A1(i[5]), .B1(i[6]), .C1(i[7]),
        .D1(i[8]), .S0(o[0]), .S1(o[1]), .COUT(o[2])
    );
endmodule
module ours(input [8:0] i, output [2:0] o);
    OURS #({parameters}) cell (
        .CIN(i[0]), .A0(i[1]), .B0(i[2]), .C0(i[3]), .D0(i[4]), .A1(i[5]), .B1(i[6]), .C1(i[7]),
        .D1(i[8]), .S0(o[0]), .S1(o[1]), .COUT(o[2])
    );
endmodule
both
read_verilog -nooverwrite +/ecp5/cells_sim.v
delete t:$specify2 t:$specify3 t:$specrule
hierarchy
proc
flatten ours reference
miter -equiv -flatten ours reference miter
hierarchy -top miter
sat -verify -prove trigger 0 miter
"""
PRODUCT = """\
read_verilog <<design
module inferred(input {sign} [{wa}:0] a, input {sign} [{wb}:0] b, output {sign} [{wp}:0] p);
    assign p = a * b;
endmodule
design
synth_ecp5 -noiopad -top inferred -run begin:map_ffs
select -assert-count 1 t:MULT18X18D
write_verilog -noattr
"""
BENCH = """\
module bench;
    reg {sign} [{wa}:0] a;
    reg {sign} [{wb}:0] b;
    wire {sign} [{wp}:0] p;
    reg {sign} [{wp}:0] expected;
    integer n, wrong = 0;
    inferred inferred (.a(a), .b(b), .p(p));
    initial begin
        for (n = 0; n < 5000; n = n + 1) begin
            a = $random;
            b = $random;
            expected = a * b;
            #1 if (p !== expected) wrong = wrong + 1;
        end
        $display("%0d", wrong);
    end
endmodule
"""


def run_yosys(script):
    done = yosys.run("-", script=script)
    assert done.returncode == 0, (done.stderr + done.stdout)[-1500:]
    return done.stdout


def models(old="", new=""):
    text = ECP5_MODELS.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new) if old else text


def compare(text, low, high, inject):
    parameters = f'.INIT0({low}), .INIT1({high}), .INJECT1_0("{inject}"), .INJECT1_1("{inject}")'
    carry_models = text[: text.index("// The operands, the pipeline")]
    ours = carry_models.replace("module CCU2C ", "module OURS ")
    run_yosys(CARRIES.format(ours=ours, parameters=parameters))


USED = [
    value for name, value in vars(ecp5_primitives).items()
    if isinstance(value, int) and not name.endswith("_BITS")
]


@pytest.mark.parametrize("inject", ["NO", pytest.param("YES", marks=pytest.mark.slow)])
@pytest.mark.parametrize("low", [*USED, *random.Random(1).sample(range(1 << 16), 4)])
def test_carries_equal_yosyss(low, inject):
    compare(models(), low, low * 40503 & 0xFFFF, inject)


def test_a_changed_carry_is_detected():
    with pytest.raises(AssertionError, match="proof did fail"):
        compare(models("INIT[{2'b00, B, A}]", "INIT[{2'b01, B, A}]"), 0x7888, 0x66F8, "NO")


def wrong_products(text, folder, a, b, sign):
    """The number of wrong products in a netlist in which Yosys inferred the block."""
    sizes = {"wa": a - 1, "wb": b - 1, "wp": a + b - 1, "sign": sign}
    log = run_yosys(PRODUCT.format(**sizes)).rpartition("Executing Verilog backend")[2]
    netlist = re.search(r"^module .*^endmodule", log, re.S | re.M)[0]
    # The model has no ports that the design does not use.
    unused = r"^ *\.(?!([ABP]\d+|SIGNED[AB]|(CLK|CE|RST)0)\()\w+\(.*\n"
    netlist = re.sub(unused, "", netlist, flags=re.M)
    (folder / "inferred.v").write_text(re.sub(r",(\s*\);)", r"\1", netlist))
    (folder / "bench.v").write_text(BENCH.format(**sizes))
    (folder / "models.v").write_text(text)
    sources = ["inferred.v", "bench.v", "models.v"]
    command = [tools.icarus().path, "-g2005", "-s", "bench", "-o", "bench", *sources]
    subprocess.run(command, cwd=folder, check=True)
    run = subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True)
    return int(run.stdout)


@pytest.mark.parametrize("sign", ["signed", ""])
@pytest.mark.parametrize("a, b", [
    (18, 18), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in [(18, 4), (5, 18)]),
])
def test_products_equal_those_yosys_infers(a, b, sign, tmp_path):
    assert wrong_products(models(), tmp_path, a, b, sign) == 0


@pytest.mark.slow
@pytest.mark.parametrize("old, new, sign", [
    ("{SIGNEDB & b[17], b};", "{1'b0, b};", "signed"),
    ("{SIGNEDB & b[17], b};", "{b[17], b};", ""),
    ("{SIGNEDA & a[17], a};", "{1'b0, a};", "signed"),
    ("{SIGNEDA & a[17], a};", "{a[17], a};", ""),
])
def test_a_changed_product_is_detected(old, new, sign, tmp_path):
    assert wrong_products(models(old, new), tmp_path, 18, 18, sign)
