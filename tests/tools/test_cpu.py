"""tools/cpu.py: the table of the C driver on a processor, and its checks."""

import json

import numpy as np
import pytest
from tooling import load


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    """The module, with temporary files for its results."""
    module = load("cpu")
    monkeypatch.setattr(module, "OUTPUT", tmp_path)
    module.saved = []
    monkeypatch.setattr(
        module.results, "save", lambda name, tables, **_: module.saved.append((name, *tables))
    )
    return module


def rows(cpu, **changes):
    """Cycles by size; the driver is faster than plain C."""
    row = dict(plain=9000, driver=800, resident=0, plain_int8=9500, int8=900) | changes
    return dict.fromkeys(cpu.SIZES, row)


def write_results(cpu, **changes):
    """Write the files of ``measure``, one of them with ``changes``."""
    for name in cpu.CONFIGS:
        for bus in cpu.BUSES:
            cycles = rows(cpu, **(changes if (name, bus) == ("2x4x1", "dma") else {}))
            (cpu.OUTPUT / f"{name}-{bus}.json").write_text(json.dumps(cycles))


def test_makes_the_record(cpu, capsys):
    write_results(cpu)
    assert cpu.main(["table"]) == 0
    [(name, table)] = cpu.saved
    assert name == "driver"
    assert [column["name"] for column in table["columns"]][:3] == ["array", "product", "plain C"]
    row = ["2x4x1", "8 x 8 x 8", 9000, 800, "-", 800, "-", 9500, 900, 900]
    assert row in table["rows"] and len(table["rows"]) == 8
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("changes, line", [
    (dict(driver=9000), "2x4x1, 8 x 8 x 8, dma, driver: 9,000 cycles, plain C 9,000"),
    (dict(resident=9001), "2x4x1, 8 x 8 x 8, dma, resident: 9,001 cycles, plain C 9,000"),
    (dict(int8=9500), "2x4x1, 8 x 8 x 8, dma, int8: 9,500 cycles, plain C 9,500"),
])
def test_fails_if_plain_c_is_as_fast(cpu, capsys, changes, line):
    write_results(cpu, **changes)
    assert cpu.main(["table"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0] == f"cpu: the driver is not faster than plain C: {line}"
    assert len(errors) == len(cpu.SIZES) - 1  # the smallest size may be slower


def test_parses_the_output_of_the_firmware(cpu):
    printed = "".join(f"{n}\n9000\n800\n0\n9500\n900\n" for n in cpu.SIZES)
    assert cpu.parsed(printed + "exit 0\n- soc.v:1: Verilog $finish\n") == rows(cpu)


@pytest.mark.parametrize("output", ["4\n9\nexit 3\n", "trap\n", ""])
def test_rejects_the_output_of_a_failed_run(cpu, output):
    with pytest.raises(SystemExit, match="cpu: the firmware did not end with `exit 0`"):
        cpu.parsed(output)


def test_operands_cover_the_range_of_int8(cpu):
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
