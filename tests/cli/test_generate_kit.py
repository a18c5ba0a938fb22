"""``weft generate --bus``: the kit, complete or not at all, and errors in one line."""

import json
import sys
from pathlib import Path

import pytest
from folders import files

from weft.cli import main
from weft.kit import build
from weft.network_core.ip import NetworkIp

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ["--rows", "1", "--cols", "2", "--a-words", "32", "--b-words", "32"]
FILES = {"README.md": b"# a core\n", "kit.json": b"{}\n", "weft_axi_1x2x1.v": b"module\n"}


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def fast(monkeypatch):
    """Replaces the generator: a kit of three files. Returns the list of generated cores."""
    cores = []

    def fake_build(ip, measured=None):
        cores.append(ip)
        return FILES

    monkeypatch.setattr(build, "build", fake_build)
    return cores


def test_writes_a_kit(here, capsys):
    assert main(["generate", "--bus", "axi", *TINY]) == 0
    place = here / "out" / "weft_axi_1x2x1"
    told = json.loads((place / "kit.json").read_text())
    assert (told["name"], told["bus"]) == ("weft_axi_1x2x1", "axi")
    assert {*told["files"], "kit.json"} == set(files(place))
    said = capsys.readouterr()
    assert "data sheet: start here" in said.out
    last = " ".join(said.out.split()[-12:])
    assert last.endswith("module weft_axi_1x2x1, 2 MAC/cycle behind axi")
    assert said.err == ""


def test_writes_to_the_given_folder(here, fast, capsys):
    more = ["--bus", "wishbone", "--pipelined", "--clocks", "2", "-o", "my/core"]
    assert main(["generate", *TINY, *more]) == 0
    assert main(["generate", *TINY, *more]) == 0  # over the existing kit
    assert files(here) == [f"my/core/{name}" for name in sorted(FILES)]
    assert {(ip.bus, ip.clocks, ip.pipelined) for ip in fast} == {("wishbone", 2, True)}


def test_writes_into_a_folder_with_brackets_in_its_name(here, fast, capsys):
    """They must not be read as colour markup."""
    assert main(["generate", "--bus", "axi", *TINY, "-o", "a[/b]"]) == 0
    assert f"a[/b]: {len(FILES)} files" in capsys.readouterr().out


def test_passes_window_on(here, fast):
    assert main(["generate", *TINY, "--lanes", "2", "--bus", "dma", "--window", "-o", "my"]) == 0
    assert [(ip.bus, ip.window) for ip in fast] == [("dma", True)]


def test_prefix_names_the_kit(here, fast):
    assert main(["generate", *TINY, "--bus", "axi", "--prefix", "mm"]) == 0
    assert [ip.prefix for ip in fast] == ["mm"]
    assert files(here) == [f"out/mm_axi_1x2x1/{name}" for name in sorted(FILES)]


def test_help_lists_the_buses(capsys):
    with pytest.raises(SystemExit) as end:
        main(["generate", "--bus", "stream", "--help"])
    assert end.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "axi: AXI4-Lite slave" in said and "docs/kit.md" in said and "--clocks N" in said


BAD = {
    "bus": (
        ["--bus", "pci"], "bus must be one of axi, wishbone, apb, stream, dma, not 'pci'"
    ),
    "clocks": (["--bus", "axi", "--clocks", "3"], "clocks must be 1 or 2, not 3"),
    "no clocks": (["--bus", "axi", "--clocks", "0"], "clocks must be 1 or 2, not 0"),
    "pipelined": (
        ["--bus", "axi", "--pipelined"], "pipelined must be False with bus 'axi', not True"
    ),
    "window": (["--bus", "axi", "--window"], "window must be False with bus 'axi', not True"),
    "widths": (
        ["--bus", "dma", "--bytes-in", "8", "--bytes-out", "4"],
        "bytes_in and bytes_out must be equal with bus 'dma', not 8 and 4",
    ),
    "config": (["--bus", "axi", "--rows", "0"], "rows must be in 1..64, not 0"),
    "no bus": (["--pipelined"], "--pipelined needs --bus; "),
    "device": (["--bus", "axi", "--measure", "z80"], "device must be one of "),
}


@pytest.mark.parametrize("name", BAD)
def test_rejects(here, fast, capsys, name):
    arguments, text = BAD[name]
    assert main(["generate", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"weft: error: {text}") and said.err.count("\n") == 1
    assert (files(here), fast) == ([], [])


def test_rejects_an_output_that_is_something_else(here, fast, capsys):
    (here / "letters").mkdir()
    (here / "letters" / "a.txt").touch()
    (here / "file").touch()
    there = files(here)
    assert main(["generate", "--bus", "axi", "-o", "letters"]) == 2
    assert main(["generate", "--bus", "axi", "-o", "file"]) == 2
    assert main(["generate", "--bus", "axi", "-o", "file/core"]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == (
        "weft: error: output must be a new folder, an empty one or a kit, and letters holds no"
        " kit.json"
    )
    assert second == "weft: error: output must be a folder, and file is a file"
    assert third.startswith("weft: error: cannot write to the output folder: ")
    assert main(["generate", "--bus", "axi", "-o", "/proc/core"]) == 2
    assert "cannot write to the output folder: " in capsys.readouterr().err
    assert (files(here), fast) == (there, [])


@pytest.mark.parametrize("module, bus", [("systemrdl", "dma"), ("peakrdl_html", "wishbone")])
def test_says_that_peakrdl_is_missing(here, fast, capsys, monkeypatch, module, bus):
    """In a checkout, the hint is the make command with the same bus."""
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["generate", "--bus", bus]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "weft: error: peakrdl 1.5 or newer is not installed;"
        f" type, in {ROOT}: make kit BUS={bus}, or: pip install -e '.[kit]'\n"
    )
    assert (files(here), fast, said.out) == ([], [], "")


CHIP = """\
rows = 2
cols = 4
depth = 4
activation = "none"
requantize = "tflite"
[network_core]
words = 64
"""


def test_a_file_with_a_table_network_core_is_a_core_for_networks(here, fast, capsys):
    (here / "network_core.toml").write_text(CHIP)
    command = ["generate", "--bus", "wishbone", "--config", "network_core.toml"]
    assert main([*command, "--pipelined", "--prefix", "mm"]) == 0
    [ip] = fast
    assert isinstance(ip, NetworkIp) and ip.config.words == 64
    assert (ip.bus, ip.pipelined, ip.prefix) == ("wishbone", True, "mm")
    for more, name in ((["--rows", "2"], "rows"), (["--clocks", "2"], "clocks")):
        assert main([*command, *more]) == 2
        text = (
            f"--{name} must not be given for a network core: network_core.toml has a table"
            " [network_core]"
        )
        assert text in capsys.readouterr().err
