"""``weft generate --bus``: the kit, whole or not at all, and one clear line for what cannot be."""

import json
import sys

import pytest

from weft.cli import main
from weft.kit import build

TINY = ["--rows", "1", "--cols", "2", "--a-words", "32", "--b-words", "32"]
FILES = {"README.md": b"# a core\n", "kit.json": b"{}\n", "weft_axi_1x2x1.v": b"module\n"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fast(monkeypatch):
    """A kit of three files, at once; gives the cores that were asked for."""
    asked = []

    def made(ip, measured=None):
        asked.append(ip)
        return FILES

    monkeypatch.setattr(build, "build", made)
    return asked


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


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


def test_writes_where_it_is_told(here, fast, capsys):
    more = ["--bus", "wishbone", "--pipelined", "--clocks", "2", "-o", "my/core"]
    assert main(["generate", *TINY, *more]) == 0
    assert main(["generate", *TINY, *more]) == 0  # over the kit that is there
    assert files(here) == [f"my/core/{name}" for name in sorted(FILES)]
    assert {(ip.bus, ip.clocks, ip.pipelined) for ip in fast} == {("wishbone", 2, True)}


def test_prefix_names_the_kit(here, fast):
    assert main(["generate", *TINY, "--bus", "axi", "--prefix", "mm"]) == 0
    assert [ip.prefix for ip in fast] == ["mm"]
    assert files(here) == [f"out/mm_axi_1x2x1/{name}" for name in sorted(FILES)]


def test_help_tells_of_buses(capsys):
    with pytest.raises(SystemExit) as end:
        main(["generate", "--bus", "stream", "--help"])
    assert end.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "axi: AXI4-Lite alone" in said and "docs/kit.md" in said and "--clocks N" in said


BAD = {
    "bus": (
        ["--bus", "pci"], "bus must be one of axi, wishbone, stream, dma, not 'pci'"
    ),
    "clocks": (["--bus", "axi", "--clocks", "3"], "clocks must be 1 or 2, not 3"),
    "no clocks": (["--bus", "axi", "--clocks", "0"], "clocks must be 1 or 2, not 0"),
    "pipelined": (
        ["--bus", "axi", "--pipelined"], "pipelined must be False with bus 'axi', not True"
    ),
    "widths": (
        ["--bus", "dma", "--bytes-in", "8", "--bytes-out", "4"],
        "bytes_in and bytes_out must be equal with bus 'dma', not 8 and 4",
    ),
    "config": (["--bus", "axi", "--rows", "0"], "rows must be in 1..64, not 0"),
    "no bus": (["--pipelined"], "--pipelined must come with --bus"),
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
    assert third.startswith("weft: error: folder of the output must be one to write in: ")
    assert (files(here), fast) == (there, [])


@pytest.mark.parametrize("module", ["systemrdl", "peakrdl_html"])
def test_says_that_peakrdl_is_missing(here, fast, capsys, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["generate", "--bus", "axi"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "weft: error: peakrdl must be 1.5 or newer, and is not installed;"
        " type: make setup, or: pip install weft[kit]\n"
    )
    assert (files(here), fast, said.out) == ([], [], "")
