"""``weft build`` from end to end, with a fake toolchain."""

import dataclasses
import json
from pathlib import Path

import pytest

from weft.boards import bitstream, toolchain
from weft.boards.benchmark import CriticalPath, OtherClock, PnrResult, RoutedDesign
from weft.boards.bitstream import BoardDesign
from weft.boards.catalog import BOARDS
from weft.boards.designs import NETWORKS_85F
from weft.boards.devices import DEVICES
from weft.boards.presets import PRESETS
from weft.boards.toolchain import Netlist, SeedError, ToolchainError
from weft.cli import main
from weft.config import Config
from weft.designs import replace
from weft.network_core.config import NetworkCoreConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE, BF16 = str(EXAMPLES / "my_board.py"), str(EXAMPLES / "bf16.toml")
NAMES = ", ".join(BOARDS)
LAYOUT = {"modules": {"top": {"cells": {
    "accelerator.core.array.pe_0_0.sum": {
        "type": "ICESTORM_LC", "parameters": {"DFF_ENABLE": "1"},
        "attributes": {"NEXTPNR_BEL": "X2/Y3/lc5"},
    },
    "accelerator.core.array.pe_0_0.mac": {
        "type": "ICESTORM_DSP", "parameters": {}, "attributes": {"NEXTPNR_BEL": "X0/Y5/mac16_0"},
    },
    "accelerator.core.array.pe_0_0.mac.block": {
        "type": "MULT9X9", "parameters": {}, "attributes": {"NEXTPNR_BEL": "X6Y9/MULT9X900"},
    },
    "status_leds.count": {
        "type": "TRELLIS_FF", "parameters": {}, "attributes": {"NEXTPNR_BEL": "X4/Y5/SLICEA.FF0"},
    },
}}}}


class Tools:
    """A fake toolchain; seed n reaches ``mhz + n``."""

    mhz = 40.0
    usb = 0.0  # MHz of a clock of USB
    most = 1 << 20  # MAC/cycle that fit
    luts = 100
    placed = 1 << 20  # MAC/cycle that nextpnr can place
    asked = []

    def __init__(self, root, *, say):
        pass

    def set_up(self, target):
        pass

    def synthesize(self, design, device, folder):
        folder.mkdir(parents=True)
        return Netlist(folder, {"SB_LUT4": self.luts})

    def route(self, netlist, device, seed, pins, clock):
        peak = int(pins)
        self.asked.append((peak, seed))
        if peak > self.most:
            raise ToolchainError(f"the design does not fit the {device.name}: it needs DSP 9 of 8")
        if peak > self.placed:
            raise SeedError("no placement")
        layout, bits = (netlist.folder / f"top-{seed}.{kind}" for kind in ("json", "bit"))
        layout.write_text(json.dumps(LAYOUT))
        bits.write_bytes(b"bits %d" % peak)
        used = dict.fromkeys(device.capacity, 0) | {"LUT": 100}
        pnr = PnrResult(used, self.mhz + seed, CriticalPath(("x.a", "y.b"), 1.0, 2.0), 1.0)
        others = (OtherClock("usb_clk", 60.0, self.usb),) if self.usb else ()
        return RoutedDesign(pnr, 36.0, layout, bits, others, device.spare)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """``run(*arguments)``: exit code and output."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(toolchain, "Toolchain", Tools)
    monkeypatch.setattr(Tools, "asked", [])
    monkeypatch.setattr(bitstream, "digests", lambda text, *_: {"design": text})
    monkeypatch.setattr(
        bitstream, "prepare",
        lambda board, config: BoardDesign(board, config, config.name, str(config.peak)),
    )

    def ended(*arguments):
        code = main(["build", *arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return ended


def test_leaves_a_bitstream_and_a_report(run, tmp_path):
    code, said = run("icebreaker")
    assert code == 0
    place = tmp_path / "out" / "icebreaker"
    assert (place / "icebreaker.bin").read_bytes() == b"bits 20"
    assert (place / "floorplan.png").read_bytes().startswith(b"\x89PNG")
    page = (place / "report.md").read_text()
    assert "| array | array | 1 | 1 | 1 |" in page
    assert "36.00 MHz required, 41.00 MHz reached, 13.9% margin" in page
    assert "1. `x.a`\n1. `y.b`\n" in page
    report = json.loads((place / "report.json").read_text())
    assert (report["fmax"], report["clock"], report["seed"]) == (41, 36, 1)
    assert report["digests"] == {"design": BOARDS["icebreaker"].config.name}
    assert report["blocks"] == {"array": {"LUT": 1, "FF": 1, "DSP": 1}}
    assert "weft program icebreaker out/icebreaker/icebreaker.bin" in said
    assert not list(place.glob("*.part"))


def test_what_a_clock_does_not_cover_is_said(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Tools, "mhz", 42.5)  # over 1.2 * 36
    code, said = run("tang-nano-20k")
    place = tmp_path / "out" / "tang-nano-20k"
    assert code == 0 and (place / "tang-nano-20k.fs").read_bytes() == b"bits 128"
    untimed = DEVICES["GW2AR-18C"].untimed
    assert untimed.startswith("nextpnr does not time DSP blocks")
    assert f"\nnote: {untimed}\n" in said
    assert f"\n* {untimed}\n" in (place / "report.md").read_text()
    assert json.loads((place / "report.json").read_text())["untimed"] == untimed
    assert "does not time" not in run("icebreaker")[1]


def test_a_clock_of_gowin_has_a_fifth_to_spare(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Tools, "mhz", 42.0)
    code, said = run("tang-nano-9k", "--seeds", "1")
    assert code == 1 and not list(tmp_path.glob("out/*/*.fs"))
    assert (
        "fmax must be 43.20 MHz, 1.2 times the clock, not 43.00 (0.5% less, with the best of 1"
        " seeds)"
    ) in said
    assert run("icebreaker")[0] == 0


def test_a_design_of_ones_own(run, tmp_path):
    assert run("icebreaker", "--rows", "1", "-o", "here")[0] == 0
    assert (tmp_path / "here" / "icebreaker.bin").read_bytes() == b"bits 5"
    (tmp_path / "my.toml").write_text("rows = 1\ncols = 1\ndepth = 2\n")
    assert run("icebreaker", "--config", "my.toml", "-o", "here")[0] == 0
    assert (tmp_path / "here" / "icebreaker.bin").read_bytes() == b"bits 2"


def test_a_board_of_ones_own(run, tmp_path):
    code, said = run("--board", MINE)
    assert code == 0
    assert (tmp_path / "out" / "myboard" / "myboard.bit").read_bytes() == b"bits 64"


def test_each_clock_is_in_the_report(run, monkeypatch, tmp_path):
    """The clock of the title is that of the core, also if one of USB has less margin."""
    monkeypatch.setattr(Tools, "usb", 60.5)
    code, said = run("icebreaker")
    assert code == 0 and "20 MAC/cycle at 36.0 MHz (41.0 MHz reached)" in said
    place = tmp_path / "out" / "icebreaker"
    assert "\n* usb_clk: 60.00 MHz required, 60.50 MHz reached\n* serial port" in (
        place / "report.md"
    ).read_text()
    report = json.loads((place / "report.json").read_text())
    assert report["other_clocks"] == {"usb_clk": {"clock": 60, "fmax": 60.5}}
    assert (report["clock"], report["fmax"]) == (36, 41)


def test_a_clock_of_usb_that_is_missed_is_an_error(run, monkeypatch, tmp_path):
    monkeypatch.setattr(Tools, "usb", 59.0)
    code, said = run("icebreaker", "--seeds", "2")
    assert code == 1 and "seed 2: 42.0 MHz, 36.0 MHz required; usb_clk 59.0 MHz, 60.0" in said
    assert said.endswith(
        "MISSED  icebreaker: usb_clk must have 60.00 MHz, not 59.00; lower --rows, --cols or"
        " --depth, or try more --seeds\n"
    )
    assert not (tmp_path / "out" / "icebreaker" / "icebreaker.bin").exists()


@pytest.mark.exit_code("build", 1)
def test_a_clock_missed_is_an_error_without_a_bitstream(run, monkeypatch, tmp_path):
    assert run("icebreaker")[0] == 0
    monkeypatch.setattr(Tools, "mhz", 30.0)
    code, said = run("icebreaker", "--rows", "2", "--seeds", "2")
    assert code == 1
    assert said.splitlines()[-1] == (
        "MISSED  icebreaker: fmax must be 36.00 MHz, not 32.00 (11.1% less, with the best of 2"
        " seeds); lower --clock, or --rows, --cols or --depth, or try more --seeds;"
        " critical path: x.a to y.b, 1.0 ns in cells, 2.0 ns between them"
    )
    assert Tools.asked[-2:] == [(10, 1), (10, 2)]
    assert not (tmp_path / "out" / "icebreaker" / "icebreaker.bin").exists()


@pytest.mark.parametrize(("field", "value", "what"), [
    ("most", 4, "DSP 9 of 8"), ("luts", 6000, "LUT 6,000 of 5,280"),
])
def test_what_does_not_fit_is_an_error(run, monkeypatch, field, value, what):
    monkeypatch.setattr(Tools, field, value)
    code, said = run("icebreaker")
    assert code == 1
    assert said.splitlines()[-1] == (
        f"MISSED  icebreaker: the design does not fit the iCE40UP5K: it needs {what};"
        " lower --rows, --cols or --depth"
    )
    assert len(Tools.asked) == (field == "most")


def test_fit_takes_the_largest_that_fits(run, monkeypatch, tmp_path):
    monkeypatch.setattr(Tools, "most", 8)
    code, said = run("icebreaker", "--fit")
    assert code == 0
    assert [peak for peak, _ in Tools.asked] == [20, 16, 8]
    assert (tmp_path / "out" / "icebreaker" / "icebreaker.bin").read_bytes() == b"bits 8"


def test_what_no_seed_can_place_is_an_error(run, monkeypatch):
    monkeypatch.setattr(Tools, "placed", 4)
    code, said = run("icebreaker", "--seeds", "2")
    assert code == 1
    assert "seed 1: no placement" in said
    assert said.splitlines()[-1] == (
        "MISSED  icebreaker: no placement; lower --rows, --cols or --depth, or try more --seeds"
    )
    assert [seed for _, seed in Tools.asked] == [1, 2]


def test_fit_leaves_out_what_no_seed_can_place(run, monkeypatch):
    monkeypatch.setattr(Tools, "placed", 8)
    assert run("icebreaker", "--fit", "--seeds", "1")[0] == 0
    assert Tools.asked[-1][0] <= 8 < Tools.asked[-2][0]


def test_fit_may_find_nothing(run, monkeypatch):
    monkeypatch.setattr(Tools, "most", 1)
    code, said = run("icebreaker", "--fit")
    assert code == 1
    assert said.splitlines()[-1] == (
        "MISSED  icebreaker: no array fits the board and meets its clock; try a lower --clock"
    )


def test_lists_the_designs_of_a_board(run):
    code, said = run("ulx3s-85f", "--list")
    assert code == 0
    assert [line.split()[6:] for line in said.splitlines()] == [
        ["8x12x8_fip_ecp5"], ["8x8x8_fip_ecp5-networks", "--for", "networks"],
        ["8x8x8_fip_ecp5-networks", "--for", "networks-fast"],
        ["8x8x8_fip_ecp5-networks", "--for", "networks-sdram"],
        ["1x16x32_fip_ecp5-networks", "--for", "batch1"],
        ["8x8x8_fip_ecp5-networks", "--for", "networks-onnx"],
        ["language_1x8x16_3072", "--for", "language"],
        ["language_1x8x16_3072_program262144_int4", "--for", "language-sdram"],
    ]


@pytest.mark.parametrize("options, text", [
    (["--rows", "4"], "--rows must not be with a language core, whose design is the one of the"),
    (["--words", "64"], "--words must not be with a language core"),
    (["--config", "x.toml"], "--config must not be with a language core"),
    (["--fit"], "--fit must be with a design for matrix products, not for language models"),
])
def test_a_language_core_has_no_options(run, options, text):
    code, said = run("ulx3s-85f", "--for", "language", *options)
    assert code == 2 and text in said


def test_lists_a_design_of_options(run):
    code, said = run("ulx3s-25f", "--list", "--rows", "2", "--clock", "120")
    assert code == 0
    assert said.splitlines()[0] == (
        "ulx3s-25f        LFE5U-25F       120 MHz 3,000,000 baud  2x7x8_fip_ecp5"
    )
    assert "--for networks" in said.splitlines()[1]
    code, said = run("ulx3s-25f", "--list", "--for", "networks", "--rows", "2")
    assert [line.split()[6] for line in said.splitlines()] == [
        "4x7x8_fip_ecp5", "2x4x4_fip_ecp5-networks", "4x4x4_fip_ecp5-networks"
    ]
    code, said = run("ulx3s-25f", "--list", "--rows", "0")
    assert (code, said) == (2, "weft: error: rows must be in 1..64, not 0\n")


def test_the_bf16_example_is_the_design_of_weft_bench(run):
    code, said = run("ulx3s-85f", "--list", "--config", BF16, "--clock", "90")
    assert code == 0
    assert said.splitlines()[0].split()[-1] == "8x8x1_bf16_ecp5"
    assert Config.from_toml(BF16, target="ecp5") == PRESETS["ecp5-85f-bf16"].config


def test_a_list_needs_a_board(run):
    code, said = run("--list")
    assert code == 2 and said.startswith("weft: error: no board given; name one of icebreaker, ")


def test_lists_and_checks_a_board_of_ones_own(run, tmp_path):
    code, said = run("--board", MINE, "--list")
    assert code == 0
    assert said.splitlines()[-1] == (
        "myboard          LFE5U-25F       125 MHz 1,000,000 baud  4x4x4_fip_ecp5"
    )
    (tmp_path / "mine.py").write_text(Path(MINE).read_text().replace('("led", 1)', '("led", 2)'))
    text = "weft: error: LED error of myboard: led#2 must be a resource of the platform\n"
    assert run("--board", "mine.py", "--list") == (2, text)


def test_a_platform_without_connectors_is_one_line(run, tmp_path):
    (tmp_path / "mine.py").write_text(Path(MINE).read_text().replace("    connectors = []\n", ""))
    text = "weft: error: platform of myboard must have the list connectors\n"
    assert run("--board", "mine.py", "--list") == (2, text)


def test_checks_the_pins_before_any_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr(Tools, "set_up", lambda self: pytest.fail("at work"))
    (tmp_path / "mine.py").write_text(Path(MINE).read_text().replace('("led", 1)', '("led", 2)'))
    text = "weft: error: LED error of myboard: led#2 must be a resource of the platform\n"
    assert run("--board", "mine.py") == (2, text)
    assert not (tmp_path / "out").exists()


def test_a_core_for_networks(run, monkeypatch, tmp_path):
    built = []

    def prepare(board, config):
        built.append((board.clock, board.baud, config))
        return BoardDesign(board, config, config.name, "512")

    monkeypatch.setattr(bitstream, "prepare", prepare)
    monkeypatch.setattr(Tools, "mhz", 105.0)
    assert run("ulx3s-85f", "--for", "networks")[0] == 0
    assert built == [(75, 3_000_000, NETWORKS_85F.config)]
    place = tmp_path / "out" / "ulx3s-85f-networks"
    assert (place / "ulx3s-85f.bit").read_bytes() == b"bits 512"
    assert "8 x 8 PEs of 8 MAC, 512 MAC/cycle" in (place / "report.md").read_text()
    assert run("icebreaker", "--for", "networks")[0] == 0
    page = tmp_path / "out" / "icebreaker-networks" / "report.md"
    assert "1 x 4 PEs of 4 MAC, 16 MAC/cycle" in page.read_text()


def test_the_phase_of_an_sdram(run, monkeypatch, tmp_path):
    built, board = [], BOARDS["icepi-zero"].sdram

    def prepare(board, config):
        built.append(board.sdram)
        return BoardDesign(board, config, config.name, str(board.sdram.phase))

    monkeypatch.setattr(bitstream, "prepare", prepare)
    monkeypatch.setattr(Tools, "mhz", 105.0)
    for more, phase in (((), 270), (("--sdram-phase", "181"), 180)):
        line = f"{board.chip.name}, whose clock comes {phase} degrees after the one of the core"
        assert line in run("icepi-zero", "--for", "networks-sdram", *more)[1]
    assert line in (tmp_path / "out" / "icepi-zero-networks-sdram" / "report.md").read_text()
    assert built == [board, dataclasses.replace(board, phase=181)]
    monkeypatch.setattr(bitstream, "prepare", None)
    code, said = run("icepi-zero", "--sdram-phase", "90")
    assert (code, "core with program_words, not for 4x7x8_fip_ecp5" in said) == (2, True)


CHIP = "rows = 2\ncols = 4\ndepth = 4\nlanes = 1\nrequantize = 'tflite'\nactivation = 'none'\n"
CHIP += "[network_core]\nwords = 512\nb_words = 256\nlines = 256\nread_vectors = 2\n"


@pytest.mark.parametrize(("arguments", "fields"), [
    (("ulx3s-25f",), {}),
    (("icebreaker",), {}),
    (("ulx3s-25f", "--for", "networks"), {}),
    (("ulx3s-25f", "--rows", "3", "--words", "1024", "--b-words", "128"),
     {"rows": 3, "words": 1024, "b_words": 128}),
], ids=["a board", "a board without such a core", "with --for", "changed"])
def test_a_core_for_networks_of_a_file(run, monkeypatch, tmp_path, arguments, fields):
    built = []
    monkeypatch.setattr(
        bitstream, "prepare",
        lambda board, config: built.append(config) or BoardDesign(board, config, config.name, "32"),
    )
    monkeypatch.setattr(Tools, "mhz", 150.0)
    (tmp_path / "my.toml").write_text(CHIP)
    assert run(*arguments, "--config", "my.toml")[0] == 0
    [config] = built
    assert isinstance(config, NetworkCoreConfig)
    assert config.target == BOARDS[arguments[0]].config.target
    wanted = {"rows": 2, "depth": 4, "words": 512, "b_words": 256, "lines": 256} | fields
    own = {f.name for f in dataclasses.fields(config)}
    assert {
        name: getattr(config if name in own else config.array, name) for name in wanted
    } == wanted


def test_options_change_a_core_for_networks(run, monkeypatch):
    built = []
    monkeypatch.setattr(
        bitstream, "prepare",
        lambda board, config: (
            built.append(config) or BoardDesign(board, config, config.name, str(len(built)))
        ),
    )
    monkeypatch.setattr(Tools, "mhz", 105.0)
    assert run("ulx3s-85f", "--for", "networks", "--rows", "6", "--lines", "256")[0] == 0
    assert run("ulx3s-85f", "--for", "networks", "--no-multiply-maps")[0] == 0
    assert run("ulx3s-85f", "--for", "networks", "--no-softmax")[0] == 0
    assert run("ulx3s-85f", "--for", "networks", "--early")[0] == 0
    assert run("ulx3s-85f", "--for", "networks", "--two-rows", "--dsp-cols", "2")[0] == 0
    assert built == [
        replace(NETWORKS_85F.config, rows=6, lines=256),
        replace(NETWORKS_85F.config, multiply_maps=False),
        replace(NETWORKS_85F.config, softmax=False),
        replace(NETWORKS_85F.config, early=True),
        replace(NETWORKS_85F.config, two_rows=True, dsp_cols=2),
    ]
    assert built[1] != NETWORKS_85F.config


def test_a_file_for_matrix_products_is_no_core_for_networks(run, tmp_path):
    (tmp_path / "my.toml").write_text("rows = 2\n")
    text = "weft: error: my.toml must have a table [network_core]\n"
    assert run("ulx3s-85f", "--for", "networks", "--config", "my.toml") == (2, text)
    (tmp_path / "my.toml").write_text(CHIP.replace("words = 512", "words = 500"))
    code, said = run("ulx3s-25f", "--config", "my.toml")
    assert code == 2
    assert said.startswith("weft: error: my.toml:\nwords must be")


def test_tools_that_fail_are_not_a_design_that_misses(run, monkeypatch):
    def route(self, netlist, device, seed, pins, clock):
        raise ToolchainError("nextpnr-ice40 failed while placing and routing the design: what")

    monkeypatch.setattr(Tools, "route", route)
    code, said = run("icebreaker")
    assert code == 2
    assert said.splitlines()[-1] == (
        "weft: error: nextpnr-ice40 failed while placing and routing the design: what"
    )


OF_85F = (
    "networks or networks-fast or networks-sdram or batch1 or networks-onnx or language or"
    " language-sdram"
)


@pytest.mark.parametrize(("arguments", "text"), [
    (["icebraker"], f"board must be one of {NAMES}, not 'icebraker'; did you mean icebreaker?"),
    ([], f"no board given; name one of {NAMES}, or give --board FILE"),
    (["icebreaker", "--board", "x.py"],
     "board must be a name or a file, not both icebreaker and x.py"),
    (["--board", "x.py"], "board file not found: x.py"),
    (["icebreaker", "--target", "ecp5"], "target of icebreaker must be ice40up, not ecp5"),
    (["icebreaker", "--clock", "0"],
     "clock of icebreaker must be over 0, not 0 MHz"),
    (["icebreaker", "--baud", "0"],
     "baud of icebreaker must be over 0, not 0"),
    (["ulx3s-85f", "--for", "network"],
     f"--for of ulx3s-85f must be {OF_85F}, not 'network'"),
    (["ecpix5-45f", "--for", "networks"], "ecpix5-45f has no network core"),
    (["ulx3s-85f", "--for", "networks", "--fit"],
     "--fit must be with a design for matrix products, not for networks"),
    (["ulx3s-85f", "--lines", "512"],
     "lines must be for a network core (--for), not for a product core"),
    (["icebreaker", "--baud", "16000000"],
     "baud must divide 48 MHz by 4 to 65535, to within 1%, not 16000000"),
    (["ulx3s-25f", "--baud", "6000000"],
     "baud must be at most 3000000, the limit of the FT231X of ulx3s-25f, not 6000000"),
    (["ulx3s-25f", "--baud", "6000000", "--list"],
     "baud must be at most 3000000, the limit of the FT231X of ulx3s-25f, not 6000000"),
    (["icebreaker", "--clock", "56", "--baud", "14000000"],
     "baud must be at most 12000000, the limit of the FT2232H of icebreaker, not 14000000"),
    (["icebreaker", "--baud", "7"], "baud must divide 48 MHz by 4 to 65535, to within 1%, not 7"),
])
def test_rejects_what_is_no_board(run, arguments, text):
    assert run(*arguments) == (2, f"weft: error: {text}\n")


def test_rejects_seeds_that_are_none(run, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        run("icebreaker", "--seeds", "0")
    assert capsys.readouterr().err.splitlines()[-1].endswith(
        "seeds must be an integer in 1..999, not '0'; see weft build --help"
    )


@pytest.mark.parametrize("name", [
    "icebreaker.bin", "report.md", "report.json", "floorplan.png",
])
def test_rejects_an_output_that_is_a_folder_before_any_work(run, tmp_path, monkeypatch, name):
    monkeypatch.setattr(Tools, "set_up", lambda self: pytest.fail("at work"))
    (tmp_path / "here" / name).mkdir(parents=True)
    code, said = run("icebreaker", "-o", "here")
    text = f"weft: error: output must be a file; here/{name} is a folder\n"
    assert (code, said) == (2, text)


def test_rejects_an_output_that_cannot_be_written_before_any_work(run, monkeypatch):
    monkeypatch.setattr(Tools, "set_up", lambda self: pytest.fail("at work"))
    code, said = run("icebreaker", "-o", "/proc")
    assert code == 2
    assert said.startswith("weft: error: cannot write to the output folder: ")
