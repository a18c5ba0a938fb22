"""examples/litex_soc: files of a network, contents of the SDRAM, and the checks of results."""

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from digits import CNN

import weft
from weft.designs import design_from_toml

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "litex_soc"
NEXTPNR = """\
Info: \t          DP16KD:      93/    208    44%
Info: \t      MULT18X18D:      60/    156    38%
Info: \t    TRELLIS_COMB:   22000/  83640    26%
Info: \t      TRELLIS_FF:   15000/  83640    17%
Info: \t    TRELLIS_RAMW:     300/  10455     2%
Info: Max frequency for clock '$glbnet$sys': 30.00 MHz (FAIL at 40.00 MHz)
Info: Max frequency for clock '$glbnet$sys': {fmax:.2f} MHz ({word} at 40.00 MHz)
"""


@pytest.fixture
def files(monkeypatch):
    """The module that writes the files of a network."""
    monkeypatch.syspath_prepend(FOLDER)
    import network_files

    return network_files


@pytest.fixture
def results(monkeypatch):
    """The module that checks results."""
    monkeypatch.syspath_prepend(FOLDER)
    import results

    return results


def header(files, network, folder):
    """The predicted cycles of a network, and its file ``network.h``."""
    config = design_from_toml(FOLDER / "network_core.toml")
    predicted = files.write_network(network, files.compiled_network(network, config), folder)
    return predicted, (folder / "network.h").read_text(encoding="utf-8")


def test_files_of_a_network(files, tmp_path):
    predicted, text = header(files, CNN, tmp_path)
    config = design_from_toml(FOLDER / "network_core.toml")
    program = weft.load(CNN).compile(config)
    assert f"LOG = {program.log}, ENTRY_VECTORS = 2,\n" in text
    assert f"LAYERS = 5, PREDICTED = {predicted}\n" in text
    assert '    {"3: CONV_2D, ADD", 2, ' in text
    assert "#define network_run digits_cnn_run\n" in text
    # SDRAM of 2 bytes a cycle is slower than a beat a cycle, with which the compiler predicts.
    assert program.segments[0].cycles < predicted < 2 * program.segments[0].cycles
    assert {path.name for path in tmp_path.iterdir()} >= {"net.c", "net.h", "network.h"}


def test_recorded_outputs_are_expected(files, tmp_path):
    network = tmp_path / "recorded.tflite"
    shutil.copy(CNN, network)
    values = np.arange(128, dtype=np.int8).reshape(2, 8, 8, 1)
    outputs = np.arange(20, dtype=np.int8).reshape(2, 10)
    np.savez(network.with_suffix(".npz"), model_in=values, model_out_tflm=outputs)
    text = header(files, network, tmp_path)[1]
    assert f"input[] = {{{', '.join(map(str, range(64)))}}};" in text
    assert "expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};" in text


@pytest.mark.parametrize("cycles, off", [
    ("1,000", "0.0% too few"), ("800", "25.0% too many"), ("1,250", "20.0% too few"),
])
def test_the_difference_from_the_prediction_is_printed(results, capsys, cycles, off):
    text = f"     cycles  predicted\n  {cycles}      1,000  all layers, on the core\n"
    results.print_difference(1000, text)
    assert capsys.readouterr().out == f"The predicted cycles are {off}.\n"


@pytest.mark.parametrize("change, message", [
    (None, r"No such file or directory|not found|no file"),
    (b"no network", "bytes 4..7 of a TFLite file must be TFL3"),
    (dict(words=16), r"the memory must have [\d,]+ bytes"),
])
def test_a_file_that_is_refused_has_a_message(files, tmp_path, capsys, change, message):
    """Exit code 2 without a traceback, before any work that takes long."""
    network, config = tmp_path / "refused.tflite", design_from_toml(FOLDER / "network_core.toml")
    if isinstance(change, bytes):
        network.write_bytes(change)
    elif change:
        network, config = CNN, dataclasses.replace(config, **change)
    with pytest.raises(SystemExit) as ended:
        files.compiled_network(network, config)
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("litex_soc: error: ") and re.search(message, line)


@pytest.mark.parametrize("contents, message", [
    (b"", "the file must have the arrays model_in and model_out_tflm: "),
    (b"text", "the file must have the arrays model_in and model_out_tflm: "),
    ({"model_in": (2, 64)}, "the file must have the arrays model_in and model_out_tflm: .*tflm"),
    ({"model_in": (2, 63), "model_out_tflm": (2, 10)},
     "model_in must have 64 int8 values for each inference, not 63 of int8"),
    ({"model_in": (2, 64), "model_out_tflm": (0, 10)}, "model_in and model_out_tflm: index 0 "),
    ({"model_in": (2, 64), "model_out_tflm": (2, 9)}, "model_out_tflm must have 10 int8 values"),
])
def test_a_record_that_is_refused_has_a_message(files, tmp_path, capsys, contents, message):
    network, config = tmp_path / "recorded.tflite", design_from_toml(FOLDER / "network_core.toml")
    shutil.copy(CNN, network)
    if isinstance(contents, bytes):
        network.with_suffix(".npz").write_bytes(contents)
    else:
        arrays = {name: np.zeros(shape, np.int8) for name, shape in contents.items()}
        np.savez(network.with_suffix(".npz"), **arrays)
    with pytest.raises(SystemExit) as ended:
        files.compiled_network(network, config)
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"litex_soc: error: {network.with_suffix('.npz')}: ")
    assert re.search(message, line)


@pytest.mark.parametrize("fmax, met", [(41.5, True), (39.99, False)])
def test_the_clock_after_routing_counts(results, capsys, fmax, met):
    text = NEXTPNR.format(fmax=fmax, word="PASS" if met else "FAIL")
    assert results.timing_is_met(text) == met
    assert capsys.readouterr().out.splitlines() == [
        "TRELLIS_COMB: 22,000 of 83,640", "TRELLIS_FF: 15,000 of 83,640",
        "TRELLIS_RAMW: 300 of 10,455", "DP16KD: 93 of 208", "MULT18X18D: 60 of 156",
        f"$glbnet$sys: {fmax} MHz, required 40.0 MHz",
    ]


def test_rows_of_the_sdram_alternate_between_its_banks(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    import verilated

    names = "mem", "mem_1", "mem_2", "mem_3"
    declarations = "".join(f"reg [15:0] {name}[0:4194303];\n" for name in names)
    (tmp_path / "sim.v").write_text(f"reg [31:0] rom[0:8191];\n{declarations}")
    data = np.arange(5 * 512, dtype="<u2").tobytes()[:-2]
    verilated.write_sdram(data, tmp_path)
    found = [
        [int(word, 16) for word in (tmp_path / f"sim_{name}.init").read_text().split()]
        for name in names
    ]
    assert found[0] == [*range(512), *range(2048, 2559), 0]
    assert found[3] == [*range(1536, 2048), *[0] * 512]


def test_no_clock_is_no_success(results):
    assert not results.timing_is_met(NEXTPNR.partition("Info: Max")[0])
