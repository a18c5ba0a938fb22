"""Hardware made of primitives equals its twin: by proof, on all inputs, or in a simulation."""

import subprocess
import tempfile
from pathlib import Path

from amaranth.hdl import Module, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from verif import yosys
from weft.hw.export import to_verilog, to_verilogs
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives import ECP5_MODELS

__all__ = ["cosimulate", "exhaustive_check", "prove_equal", "run_bench"]

# Reads a design and the models of primitives, and saves both as one flat module.
PREPARE = """\
read_verilog -defer <<models
{models}
models
read_verilog <<design
{design}
design
hierarchy -check -top {name}
proc
flatten
memory_map
async2sync
opt_clean
design -stash {name}
"""
# The miter has twin and primitives, with shared inputs; `trigger` is 1 if an output differs.
MITER = """\
design -copy-from twin -as twin twin
design -copy-from primitives -as primitives primitives
miter -equiv -flatten -make_outputs twin primitives miter
hierarchy -top miter
setundef -undriven -expose
sat -verify -tempinduct -maxsteps {steps} -prove trigger 0 miter
"""


def prove_equal(component, *, steps, models=None) -> None:
    """Prove that a component has the same outputs with primitives and without them (its twin).

    The proof is by induction. The outputs are equal in the first cycles; and after some cycles with
    equal outputs, from any state, the outputs of the next cycle are equal.

    Parameters
    ----------
    component : Component
        Elaborates to primitives on the platform `weft.hw.primitives.Primitives`, and to its twin
        without a platform.
    steps : int
        Maximum length of the induction in cycles; at least the latency of the component.
    models : str, optional
        Text of Verilog models of the primitives; by default of the ECP5's.

    Raises
    ------
    AssertionError
        If Yosys finds a difference or no proof; with the end of its output.
    weft.sim.tools.ToolError
        If Yosys is missing.
    """
    models = ECP5_MODELS.read_text(encoding="utf-8") if models is None else models
    designs = {"twin": (component, None), "primitives": (component, Primitives())}
    script = "".join(
        PREPARE.format(models=models, design=design, name=name)
        for name, design in zip(designs, to_verilogs(designs), strict=True)
    )
    script += MITER.format(steps=steps)
    done = yosys.run("-q", "-", script=script)
    if done.returncode:
        log = (done.stderr + done.stdout).strip()[-2000:]
        raise AssertionError(f"the primitives are not proven equal to their twin; Yosys: {log}")


PRODUCT = Path(__file__).with_name("product.v")


class _AlwaysEnabled(wiring.Component):
    """A multiplier whose pipeline advances in every cycle."""

    def __init__(self, multiplier):
        self.multiplier = multiplier
        names = ("a", "b", "product")
        super().__init__({name: multiplier.signature.members[name] for name in names})

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = multiplier = self.multiplier
        m.d.comb += [
            multiplier.a.eq(self.a), multiplier.b.eq(self.b), self.product.eq(multiplier.product),
        ]
        return m


def exhaustive_check(kind, *, width, models=None) -> str:
    """Simulate a signed multiplier in Icarus; returns ``PASS``, or ``FAIL`` and the wrong product.

    Parameters
    ----------
    kind : type
        `Multiplier`, or a class with its parameters and ports.
    width : int
        Bits of each operand.
    models : str, optional
        Verilog models of the primitives; by default, the ECP5's.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus is missing.
    """
    multiplier = _AlwaysEnabled(kind(a=signed(width), b=signed(width)))
    texts = {
        "multiplier.v": to_verilog(multiplier, name="multiplier", platform=Primitives()),
        "models.v": ECP5_MODELS.read_text(encoding="utf-8") if models is None else models,
    }
    texts["product.v"] = PRODUCT.read_text(encoding="utf-8")
    return run_bench(texts, "product", WIDTH=width, LATENCY=kind.LATENCY)


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


LIMIT = 1800  # seconds


def run_bench(texts: dict[str, str], top: str, **parameters) -> str:
    """The output of the bench ``top`` in the files ``texts``, with values for its parameters."""
    values = [f"-P{top}.{name}={value}" for name, value in parameters.items()]
    icarus = tools.icarus().path
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        subprocess.run(
            [icarus, "-g2005", "-o", top, "-s", top, *values, *texts], cwd=folder, check=True,
            timeout=LIMIT,
        )
        run = subprocess.run(
            ["vvp", "-n", top], cwd=folder, check=True, capture_output=True, text=True,
            timeout=LIMIT,
        )
    return run.stdout.strip()
