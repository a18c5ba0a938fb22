"""Simulates hardware made of primitives beside its twin, with the same random inputs."""

from amaranth.hdl import Value
from amaranth.lib.wiring import In

from verif.primitives.icarus import run_bench
from weft.hw.export import to_verilogs
from weft.hw.primitives import Primitives
from weft.sim.primitives import ECP5_MODELS

__all__ = ["cosimulate"]

BENCH = """\
`timescale 1ns / 1ns
module cosimulate;
    reg clk = 0;
    reg [{inputs} - 1:0] i;
    wire [{outputs} - 1:0] twin_o, primitives_o;
    integer seed = 1, known = 0, n, k;
    twin twin (.clk(clk), .rst(1'b0){twin});
    primitives primitives (.clk(clk), .rst(1'b0){primitives});
    initial begin
        for (n = 0; n < {cycles}; n = n + 1) begin
            for (k = 0; k < {inputs}; k = k + 1) i[k] = $random(seed);
            #1 clk = 1;
            #1 clk = 0;
            // Outputs of the twin that are x, since nothing was written yet, are not compared.
            for (k = 0; k < {outputs}; k = k + 1) if (twin_o[k] !== 1'bx) begin
                known = known + 1;
                if (twin_o[k] !== primitives_o[k]) begin
                    $display("FAIL: output bit %0d differs in cycle %0d", k, n);
                    $finish;
                end
            end
        end
        if (known > {cycles} / 2) $display("PASS");
        else $display("FAIL: the twin has too few defined outputs");
        $finish;
    end
endmodule
"""


def cosimulate(component, *, cycles, models=None) -> str:
    """Simulate in Icarus with random inputs; returns ``PASS``, or ``FAIL`` and the difference.

    Parameters
    ----------
    component : Component
        All ports are signals, In or Out.
    cycles : int
    models : str, optional
        Verilog models of the primitives; by default, the ECP5's.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus is missing.
    """
    sizes, connections = {"i": 0, "o": 0}, {"twin": "", "primitives": ""}
    for name, member in component.signature.members.items():
        kind = "i" if member.flow is In else "o"
        size = len(Value.cast(getattr(component, name)))
        for side, text in connections.items():
            bus = "i" if kind == "i" else f"{side}_o"
            connections[side] = f"{text}, .{name}({bus}[{sizes[kind]} +: {size}])"
        sizes[kind] += size
    twin, primitives = to_verilogs({
        "twin": (component, None), "primitives": (component, Primitives()),
    })
    texts = {
        "twin.v": twin, "primitives.v": primitives,
        "models.v": ECP5_MODELS.read_text(encoding="utf-8") if models is None else models,
        "cosimulate.v": BENCH.format(
            inputs=sizes["i"], outputs=sizes["o"], cycles=cycles, **connections
        ),
    }
    return run_bench(texts, "cosimulate")
