"""The table of the C driver on a processor: what it shows, and when it fails."""

import json

import numpy as np
import pytest
from tooling import load


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    """The module, which keeps its results in a folder of its own."""
    module = load("cpu")
    monkeypatch.setattr(module, "PLACE", tmp_path)
    monkeypatch.setattr(module, "PAGE", tmp_path / "interop.md")
    return module


def rows(cpu, **changes):
    """Cycles by size: all of the driver's below those of plain C."""
    row = dict(plain=9000, fed=800, resident=0, plain_scaled=9500, scaled=900) | changes
    return dict.fromkeys(cpu.SIZES, row)


def keep(cpu, **changes):
    """Files as ``measure`` leaves them; one of them with ``changes``."""
    for name in cpu.CONFIGS:
        for bus in cpu.BUSES:
            found = rows(cpu, **(changes if (name, bus) == ("2x4x1", "dma") else {}))
            (cpu.PLACE / f"{name}-{bus}.json").write_text(json.dumps(found))
    cpu.PAGE.write_text(f"before\n{cpu.BEGIN}old\n{cpu.END}after\n")


def test_writes_the_table_between_its_marks(cpu, capsys):
    keep(cpu)
    assert cpu.main(["table"]) == 0
    page = cpu.PAGE.read_text()
    assert page.startswith(f"before\n{cpu.BEGIN}| array | product | plain C |")
    assert page.endswith(f"|\n{cpu.END}after\n")
    line = "| 2x4x1 | 8 x 8 x 8 | 9,000 | 800 | - | 800 | - | 9,500 | 900 | 900 |\n"
    assert line in page and "old" not in page
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("changes, line", [
    (dict(fed=9000), "2x4x1, 8 x 8 x 8, dma, fed: 9,000 cycles, plain C 9,000"),
    (dict(resident=9001), "2x4x1, 8 x 8 x 8, dma, resident: 9,001 cycles, plain C 9,000"),
    (dict(scaled=9500), "2x4x1, 8 x 8 x 8, dma, scaled: 9,500 cycles, plain C 9,500"),
])
def test_fails_where_plain_c_is_as_fast(cpu, capsys, changes, line):
    keep(cpu, **changes)
    assert cpu.main(["table"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"cpu: the driver must be faster than plain C: {line}"
    assert len(said) == len(cpu.SIZES) - 1  # the smallest size may be slower


def test_reads_what_the_firmware_prints(cpu):
    printed = "".join(f"{n}\n9000\n800\n0\n9500\n900\n" for n in cpu.SIZES)
    assert cpu.parsed(printed + "exit 0\n- soc.v:1: Verilog $finish\n") == rows(cpu)


@pytest.mark.parametrize("said", ["4\n9\nexit 3\n", "trap\n", ""])
def test_a_wrong_result_is_no_measurement(cpu, said):
    with pytest.raises(SystemExit, match="cpu: the firmware must end with `exit 0`"):
        cpu.parsed(said)


def test_operands_reach_both_ends_of_int8(cpu):
    text = cpu.operands()
    values = [line for line in text.splitlines() if " a32[]" in line][0]
    numbers = np.array(values[values.index("{") + 1 : -2].split(", "), int)
    assert (numbers.min(), numbers.max()) == (-128, 127)


@pytest.mark.parametrize("arguments", [[], ["measure", "1x1x1", "axi"], ["measure", "8x8x1"]])
def test_usage(cpu, capsys, arguments):
    assert cpu.main(arguments) == 2
    assert capsys.readouterr().err == (
        "usage: cpu.py measure 8x8x1|2x4x1 axi|dma\n       cpu.py table\n"
    )
