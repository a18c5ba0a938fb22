"""Hardware built of primitives and its twin, simulated side by side with the same noise."""

import subprocess
import tempfile
from pathlib import Path

from amaranth.hdl import Value
from amaranth.lib.wiring import In

from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives.proof import MODELS

__all__ = ["cosimulate"]

BENCH = """\
`timescale 1ns / 1ns
module cosimulate;
    reg clk = 0;
    reg [{inputs} - 1:0] i;
    wire [{outputs} - 1:0] gold_o, gate_o;
    integer seed = 1, known = 0, n, k;
    gold gold (.clk(clk), .rst(1'b0){gold});
    gate gate (.clk(clk), .rst(1'b0){gate});
    initial begin
        for (n = 0; n < {cycles}; n = n + 1) begin
            for (k = 0; k < {inputs}; k = k + 1) i[k] = $random(seed);
            #1 clk = 1;
            #1 clk = 0;
            // What the twin does not know, as it was never written, may be anything.
            for (k = 0; k < {outputs}; k = k + 1) if (gold_o[k] !== 1'bx) begin
                known = known + 1;
                if (gold_o[k] !== gate_o[k]) begin
                    $display("WRONG: bit %0d in cycle %0d", k, n);
                    $finish;
                end
            end
        end
        if (known > {cycles} / 2) $display("ALL RIGHT");
        else $display("WRONG: too little is known");
        $finish;
    end
endmodule
"""


def cosimulate(component, *, cycles, models=None) -> str:
    """``ALL RIGHT``, or what is ``WRONG``: as Icarus says after so many cycles of noise.

    Parameters
    ----------
    component : Component
        Its ports are signals, in or out.
    cycles : int
    models : str, optional
        Other models of the primitives, in Verilog.

    Raises
    ------
    weft.sim.tools.ToolError
        Where there is no Icarus.
    """
    sizes, wires = {"i": 0, "o": 0}, {"gold": "", "gate": ""}
    for name, member in component.signature.members.items():
        kind = "i" if member.flow is In else "o"
        size = len(Value.cast(getattr(component, name)))
        for side, text in wires.items():
            bus = "i" if kind == "i" else f"{side}_o"
            wires[side] = f"{text}, .{name}({bus}[{sizes[kind]} +: {size}])"
        sizes[kind] += size
    texts = {
        "gold.v": to_verilog(component, name="gold"),
        "gate.v": to_verilog(component, name="gate", platform=Primitives()),
        "models.v": MODELS.read_text(encoding="utf-8") if models is None else models,
        "cosimulate.v": BENCH.format(inputs=sizes["i"], outputs=sizes["o"], cycles=cycles, **wires),
    }
    icarus = tools.icarus().path
    with tempfile.TemporaryDirectory() as place:
        for name, text in texts.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        subprocess.run(
            [icarus, "-g2005", "-o", "cosimulate", "-s", "cosimulate", *texts],
            cwd=place, check=True,
            timeout=1800,
        )
        run = subprocess.run(
            ["vvp", "-n", "cosimulate"], cwd=place, check=True, capture_output=True, text=True,
            timeout=1800,
        )
    return run.stdout.strip()
