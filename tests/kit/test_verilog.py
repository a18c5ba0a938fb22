"""The core's Verilog: Icarus reads it, and Verilator's -Wall reports only waived warnings."""

import re
import subprocess

import pytest
from tiers import tiers

from weft.buses import BUSES
from weft.kit.folder import text, write
from weft.sim.tools import verilator

CASES = [(bus, {}) for bus in BUSES] + [
    ("wishbone", {"pipelined": True}), ("axi", {"clocks": 2}),
    ("axi", {"target": "ecp5", "rows": 1, "cols": 2}),
    ("axi", {"target": "ice40up", "rows": 1, "cols": 2, "depth": 2}),
    ("axi", {"dtype": "bf16", "rows": 1, "cols": 2}),
    ("dma", {"target": "ecp5", "rows": 1, "cols": 2, "lanes": 1, "bytes_in": 4, "bytes_out": 4}),
    ("networks", {}),
]
SLOW = 0, 1  # two buses; the others, ECP5, bf16 and networks among them, are long
# Warnings of Verilator 5.006, from its manual.
RULES_OF_5_006 = """
    ALWCOMBORDER ASSIGNDLY ASSIGNIN BADSTDPRAGMA BLKANDNBLK BLKLOOPINIT BLKSEQ BSSPACE
    CASEINCOMPLETE CASEOVERLAP CASEX CASEWITHX CASTCONST CDCRSTLOGIC CLKDATA CMPCONST COLONPLUS
    COMBDLY CONTASSREG DECLFILENAME DEFPARAM DEPRECATED ENDLABEL EOFNEWLINE GENCLK HIERBLOCK
    IFDEPTH IGNOREDRETURN IMPERFECTSCH IMPLICIT IMPORTSTAR IMPURE INCABSPATH INFINITELOOP
    INITIALDLY INSECURE LATCH LITENDIAN MODDUP MULTIDRIVEN MULTITOP NOLATCH NULLPORT
    PINCONNECTEMPTY PINMISSING PINNOCONNECT PINNOTFOUND PKGNODECL PROCASSWIRE PROFOUTOFDATE
    PROTECTED RANDC REALCVT REDEFMACRO SELRANGE SHORTREAL SPLITVAR STMTDLY SYMRSVDWORD SYNCASYNCNET
    TICKCOUNT TIMESCALEMOD UNDRIVEN UNOPT UNOPTFLAT UNOPTTHREADS UNPACKED UNSIGNED UNUSED
    UNUSEDGENVAR UNUSEDPARAM UNUSEDSIGNAL USERINFO USERWARN VARHIDDEN WAITCONST WIDTH WIDTHCONCAT
    ZERODLY
""".split()
LATCH = "  reg latched; always @* if (irq) latched = aresetn;"


def lint(folder, ip, files):
    """Run Verilator's lint on a kit."""
    sources = [name for name in (f"{ip.name}.v", f"{ip.name}_primitives.v") if name in files]
    return subprocess.run(
        [verilator().path, "--lint-only", "-Wall", f"{ip.name}.vlt", *sources,
         "--top-module", ip.name],
        cwd=folder, capture_output=True, text=True,
    )


def test_waivers_name_rules_that_every_version_knows():
    """Verilator 5.006 (Debian 12) ends with an error on an unknown rule; so does the newest."""
    rules = re.findall(r"-rule (\w+)", text("lint.vlt"))
    assert len(rules) > 8
    assert [rule for rule in rules if rule not in RULES_OF_5_006] == []


@pytest.mark.parametrize("bus, more", [
    pytest.param(*case, marks=pytest.mark.slow if number in SLOW else pytest.mark.long)
    for number, case in enumerate(CASES)
])
def test_lints_clean(kits, bus, more, tmp_path):
    ip, files = kits(bus, **more)
    write(tmp_path / "kit", files)
    done = lint(tmp_path / "kit", ip, files)
    assert (done.returncode, done.stderr) == (0, "")


def test_lint_reports_a_latch(kits, tmp_path):
    ip, files = kits("axi")
    broken = files[f"{ip.name}.v"].decode().replace("  wire irq;", f"  wire irq;\n{LATCH}", 1)
    write(tmp_path / "kit", {**files, f"{ip.name}.v": broken.encode()})
    done = lint(tmp_path / "kit", ip, files)
    assert done.returncode and "LATCH" in done.stderr


@pytest.mark.parametrize("bus", tiers({bus: bus for bus in BUSES}, "axi", long={"dma", "stream"}))
def test_is_verilog_2005(kits, bus, tmp_path):
    ip, files = kits(bus)
    (tmp_path / "core.v").write_bytes(files[f"{ip.name}.v"])
    done = subprocess.run(
        ["iverilog", "-g2005", "-t", "null", "-s", ip.name, "core.v"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
