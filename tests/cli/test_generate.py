"""``weft generate``: the Verilog file, complete or not at all, and the output of the command."""

from pathlib import Path

import pytest
from folders import files

from weft.cli import main
from weft.config import Config
from weft.hw import export
from weft.mac_cells import MAC_CELLS, MacCell

TINY = ["--rows", "1", "--cols", "2", "--a-words", "32", "--b-words", "32"]
CONFIG = Config(rows=1, cols=2, a_words=32, b_words=32)


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def fast(monkeypatch):
    """Replaces the generator: two lines of Verilog with the name of the Config."""
    monkeypatch.setattr(export, "verilog", lambda config: f"// {config.name}\n// é\n")


def test_writes_the_core(here, capsys):
    assert main(["generate", *TINY]) == 0
    text = (here / "out/weft_1x2x1.v").read_text(encoding="utf-8")
    assert text == export.verilog(CONFIG)
    lines = len(text.splitlines())
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "   ...  generating 1x2x1"
    last = f"out/weft_1x2x1.v: module weft, {lines:,} lines, 2 MAC/cycle"
    assert said.out.splitlines()[-1] == last
    assert said.err == ""


def test_a_mac_cell_without_hardware_is_one_line(capsys):
    MAC_CELLS.register(MacCell(name="bare", multiplier="bare", latency=2))
    try:
        assert main(["generate", *TINY, "--multiplier", "bare"]) == 2
    finally:
        MAC_CELLS.remove("bare")
    text = "MAC cell 'bare' must be registered with hardware=..., not without it"
    assert capsys.readouterr().err == f"weft: error: {text}\n"


def test_writes_to_the_given_path(here, fast, capsys):
    assert main(["generate", *TINY, "-o", "new/deep/core.v"]) == 0
    assert (here / "new/deep/core.v").read_text(encoding="utf-8") == "// 1x2x1\n// é\n"
    assert files(here) == ["new/deep/core.v"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "new/deep/core.v: module weft, 2 lines, 2 MAC/cycle"


def test_reads_the_config_from_a_file(here, fast, capsys):
    (here / "my.toml").write_text("rows = 3\ncols = 5\n")
    assert main(["generate", "--config", "my.toml", "--cols", "4"]) == 0
    assert (here / "out/weft_3x4x1.v").read_text(encoding="utf-8") == "// 3x4x1\n// é\n"


def test_replaces_an_existing_file(here, fast):
    (here / "core.v").write_text("old and longer than the new one, by far")
    assert main(["generate", *TINY, "--output", "core.v"]) == 0
    assert (here / "core.v").read_text(encoding="utf-8") == "// 1x2x1\n// é\n"
    assert files(here) == ["core.v"]


def test_keeps_the_existing_file_if_writing_fails(here, fast, capsys, monkeypatch):
    (here / "core.v").write_text("old")
    real = Path.write_text

    def half(path, text, encoding):
        real(path, text[:5], encoding=encoding)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    assert main(["generate", *TINY, "-o", "core.v"]) == 2
    assert capsys.readouterr().err == "weft: error: core.v: No space left on device\n"
    assert (here / "core.v").read_text() == "old"
    assert files(here) == ["core.v"]


def refused(*arguments):
    """Whether the command ends with exit code 2 before it generates Verilog."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "verilog", lambda config: pytest.fail("generated"))
        return main(["generate", *arguments]) == 2


def test_rejects_a_folder_as_output(here, capsys):
    (here / "core.v").mkdir()
    assert refused("-o", "core.v")
    text = "weft: error: output must be a file; core.v is a folder\n"
    assert capsys.readouterr() == ("", text)
    assert files(here) == []


def test_rejects_a_device_as_output(capsys):
    assert refused("-o", "/dev/null")
    text = "weft: error: output must be a file; /dev/null is a special file\n"
    assert capsys.readouterr() == ("", text)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("output", ["/proc/core.v", 252 * "a" + ".v"])
def test_rejects_a_file_that_cannot_be_written_before_any_work(here, output, capsys):
    """These paths fail even for root; the temporary name of the second one is too long."""
    assert refused("-o", output)
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("weft: error: cannot write ")
    assert files(here) == []


def test_rejects_a_folder_that_cannot_be_made(here, capsys):
    (here / "file").touch()
    assert refused("-o", "file/core.v")
    text = "cannot write to the output folder: [Errno 17] File exists: 'file'"
    assert capsys.readouterr() == ("", f"weft: error: {text}\n")
    assert files(here) == ["file"]


def test_rejects_a_wrong_config(here, capsys):
    assert refused("--rows", "0", "--multiplier", "fip")
    assert capsys.readouterr() == ("", (
        "weft: error: rows must be in 1..64, not 0\n"
        "depth must be even with multiplier 'fip', not 1\n"
    ))
    assert files(here) == []


def test_says_that_yosys_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "system")
    monkeypatch.setenv("PATH", "")
    assert main(["generate", *TINY]) == 2
    text = "weft: error: Could not find an acceptable Yosys binary. Searched: system\n"
    assert capsys.readouterr().err == text
