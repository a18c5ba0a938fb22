"""``weft sdram``: the Verilog of a controller, the list of chips, errors of one line."""

import re
from dataclasses import replace

import pytest
from folders import files

from weft.cli import main
from weft.hw.export import to_verilog
from weft.hw.sdram.ip import SdramIp
from weft.sdram import SDRAM_CHIPS

pytestmark = pytest.mark.usefixtures("here")


def test_writes_a_controller(here, capsys):
    assert main(["sdram", "EM638325-7", "--mhz", "110", "-o", "own/chip.v"]) == 0
    text = (here / "own/chip.v").read_text(encoding="utf-8")
    assert files(here) == ["own/chip.v"]
    head = text[text.index("module weft_sdram("):]
    for port in ("input aclk;", "input aresetn;", "input [22:0] s_axi_araddr;",
                 "output [127:0] s_axi_rdata;", "input [15:0] s_axi_wstrb;",
                 "output [10:0] sdram_a;", "output [31:0] sdram_dq_o;"):
        assert f"  {port}\n" in head
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"own/chip.v: module weft_sdram, {len(text.splitlines()):,} lines; EM638325-7, 8 MiB, beats"
        " of 16 bytes; linear reads at 110 MHz: 438 MB/s"
    )


def test_writes_a_controller_of_a_chip_without_dqm(here, capsys):
    for options in [], ["--no-dqm"]:
        command = ["sdram", "EM638325-7", "--mhz", "100", "--data-bytes", "8", *options]
        assert main([*command, "-o", f"{len(options)}.v"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split("; ")[1] == (
        "EM638325-7 without DQM, 8 MiB, beats of 8 bytes"
    )
    chip = replace(SDRAM_CHIPS["EM638325-7"], masks=False)
    text = to_verilog(SdramIp(chip, chip.timing(100), data_bytes=8), name="weft_sdram")
    assert (here / "1.v").read_text(encoding="utf-8") == text
    assert (here / "0.v").read_text(encoding="utf-8") != text


def test_lists_the_chips(capsys):
    assert main(["sdram"]) == 0
    rows = re.findall(r"^ (\S+-\S+) +(\d+) MiB +(\d+) +(\d+) +(\d+) MB/s", capsys.readouterr().out,
                      re.MULTILINE)
    assert {row[0]: (*map(int, row[1:3]), int(row[4])) for row in rows} == {
        name: (chip.size >> 20, chip.width, 198 if chip.width == 16 else 398)
        for name, chip in SDRAM_CHIPS.items()
    }


@pytest.mark.parametrize("arguments, text", [
    (["--mhz", "100"], "--mhz needs a CHIP"),
    (["--data-bytes", "8"], "--data-bytes needs a CHIP"),
    (["-o", "a.v"], "--output needs a CHIP"),
    (["--no-dqm"], "--no-dqm needs a CHIP"),
    (["IS42", "--mhz", "100"], f"CHIP must be one of {', '.join(SDRAM_CHIPS)}, not IS42"),
    (["EM638325-7"], "--mhz must be given: the timing of the chip depends on the clock"),
    (["EM638325-7", "--mhz", "150"], "mhz must be at most 143 for EM638325-7, not 150"),
    (["EM638325-7", "--mhz", "99", "--data-bytes", "4"],
     "data_bytes must be a power of two in 8..64 for EM638325-7, not 4"),
])
def test_rejects(here, capsys, arguments, text):
    assert main(["sdram", *arguments]) == 2
    assert capsys.readouterr().err == f"weft: error: {text}\n"
    assert files(here) == []
