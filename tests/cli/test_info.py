"""``weft info``: the fields, the size of the buffers, and the cycles of products."""

import dataclasses
import re

import pytest

from weft.boards.designs import NETWORKS_UP5K
from weft.cli import main
from weft.cli.info import cycle_counts
from weft.config import Config
from weft.models.network_core.operators import LOWERINGS
from weft.models.network_core.wide_maps import WIDE
from weft.models.report.placement import KERNELS, operator_lines


@pytest.fixture
def info(capsys, monkeypatch):
    """The lines that ``weft info`` prints, split into columns."""
    monkeypatch.setenv("COLUMNS", "1000")  # no meaning of a field is divided

    def run(*arguments):
        assert main(["info", *arguments]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return [re.split(r"\s{2,}", line.strip()) for line in said.out.splitlines()]

    return run


def test_prints_every_field_and_its_meaning(info):
    lines = info("--rows", "3", "--multiplier", "fip", "--depth", "2", "--shape", "1x1x1")
    config = Config(rows=3, multiplier="fip", depth=2)
    assert lines[0] == [f"3x8x2_fip: 48 MAC/cycle, hash {config.hash:08x}"]
    start = lines.index(["field", "value", "meaning"]) + 2
    fields = dataclasses.fields(Config)
    assert lines[start : start + len(fields)] == [
        [f.name, str(getattr(config, f.name)), f.metadata["text"]] for f in fields
    ]


def test_prints_the_size_of_the_buffers(info):
    lines = info(
        "--rows", "3", "--depth", "2", "--a-words", "64", "--bytes-out", "4", "--shape", "1x1x1"
    )
    assert ["A buffer: 384 bytes; one panel of 3 rows holds K up to 128"] in lines
    assert ["B buffer: 64 KiB; one panel of 8 columns holds K up to 8,192"] in lines


HEAD = ["M x K x N", "results", "cold", "resident", "steady", "utilization"]


def test_prints_the_k_for_the_full_rate(info):
    def said(*design):
        lines = info(*design, "--shape", "1x1x1")
        return [line[0] for line in lines if "tile time" in line[0]]

    # 3 rows of 8 results, one a cycle: 24 cycles, which 47 pairs take, two a cycle.
    assert said("--rows", "3", "--depth", "2", "--bytes-out", "4") == [
        ("tile time, int32 results: max(ceil(K / 2), 3 to drain, 24 to send) cycles;"
         " the array never waits if K is 47 or more"),
        # int8: four results per cycle.
        ("tile time, int8 results: max(ceil(K / 2), 3 to drain, 6 to send) cycles;"
         " the array never waits if K is 11 or more"),
    ]
    # Half a word of results a row: 8 cycles to send, as many as to drain.
    [only] = said("--cols", "2", "--requantize", "none")
    assert only.endswith("8 to send) cycles; the array never waits if K is 8 or more")


def test_prints_the_cycles_of_the_default_products(info):
    lines = info()
    start = lines.index(HEAD) + 2
    assert lines[start : start + 8 : 2] == [
        ["8 x 8 x 8", "int32", "51", "40", "23", "34.8%"],
        ["16 x 16 x 16", "int32", "115", "96", "64", "100.0%"],
        ["64 x 64 x 64", "int32", "4,195", "4,128", "4,096", "100.0%"],
        ["128 x 128 x 128", "int32", "32,931", "32,800", "32,768", "100.0%"],
    ]
    # Bytes take the finisher's 24 cycles, and the load of 8 panels of parameters before.
    assert lines[start + 5] == ["64 x 64 x 64", "int8", "4,292", "4,152", "4,096", "100.0%"]


def test_prints_the_cycles_of_the_given_products(info):
    lines = info("--shape", "450x64x64", "--shape", "1x640x128", "--requantize", "none")
    start = lines.index(HEAD) + 2
    assert lines[start : start + 3] == [
        ["450 x 64 x 64", "int32", "29,271", "29,204", "29,184", "98.7%"],
        ["1 x 640 x 128", "int32", "10,901", "-", "10,240", "12.5%"],
        [""],
    ]


def test_resident_cycles_are_none_if_operands_do_not_fit():
    config = Config(a_words=32, b_words=64)
    assert cycle_counts(config, 16, 16, 32)[1] is not None
    assert cycle_counts(config, 17, 16, 32)[1] is None  # three panels of A, and two pages
    assert cycle_counts(config, 16, 16, 33)[1] is None  # five panels of B, and four pages
    assert cycle_counts(config, 16, 17, 16)[1] is None  # two panels of A of two pages each


@pytest.mark.parametrize("shape", ["8x8", "8x8x8x8", "0x8x8", "8x8x0", "8x-8x8", "8 x 8 x 8", ""])
def test_rejects_a_wrong_shape(shape, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["info", f"--shape={shape}"])
    last = capsys.readouterr().err.splitlines()[-1]
    text = f"shape must be MxKxN, each 1 or more, not {shape!r}"
    assert last == f"weft info: error: argument --shape: {text}; see weft info --help"


@pytest.mark.parametrize("shape, options, text", [
    ("1x131072x1", [], "K must be at most 131071 with int8, not 131072"),
    ("1x1x2147483649", [], "N must be in 1..2147483648, not 2147483649"),
    ("1x2147483649x1", ["--dtype", "bf16"], "K must be in 1..2147483648, not 2147483649"),
])
def test_rejects_a_shape_before_any_work(shape, options, text, capsys):
    assert main(["info", "--shape", "8x8x8", "--shape", shape, *options]) == 2
    assert capsys.readouterr() == ("", f"weft: error: shape {shape}: {text}\n")


def test_prints_the_cycles_of_huge_products(info):
    # Of 64 steps a tile, which is more than its loads and its results take.
    lines = info("--shape", "8388608x64x8388608", "--requantize", "none")
    row = lines[lines.index(HEAD) + 2]
    assert row[0] == "8388608 x 64 x 8388608"
    assert row[3:] == ["-", f"{(1 << 40) * 64:,}", "100.0%"]


def test_rejects_a_wrong_config(capsys):
    assert main(["info", "--jobs", "3", "--hop", "65"]) == 2
    assert capsys.readouterr() == ("", (
        "weft: error: hop must be in 1..64, not 65\njobs must be a power of two in 2..16, not 3\n"
    ))


@pytest.fixture
def network_core(tmp_path):
    """The path of a file with a network core, with fields of its table."""
    def write(**fields):
        path = tmp_path / "core.toml"
        mode = fields.pop("requantize", "tflite")
        path.write_text(
            f'rows = 2\ncols = 4\ndepth = 4\nlanes = 4\nactivation = "none"\n'
            f'requantize = "{mode}"\n[network_core]\nwords = 4096\n'
            + "".join(f"{name} = {str(value).lower()}\n" for name, value in fields.items())
        )
        return str(path)

    return write


LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"


OF_INT16 = "tensors and states of int16"


@pytest.mark.parametrize("fields, has, lacks", [
    ({}, set(), {
        "MUL of two maps": "multiply_maps", "SOFTMAX": "softmax", LSTM: "lstm", OF_INT16: "int16",
    }),
    ({"softmax": True, "int16": True}, {"SOFTMAX", OF_INT16},
     {"MUL of two maps": "multiply_maps", LSTM: "lstm"}),
    ({"softmax": True, "multiply_maps": True, "lstm": True, "int16": True},
     {"SOFTMAX", "MUL of two maps", LSTM, OF_INT16}, {}),
    ({"requantize": "single"}, set(), {"MUL of two maps": "multiply_maps"}),
])
def test_a_network_core_has_the_operators_of_its_options(fields, has, lacks, info, network_core):
    lines = [" ".join(line) for line in info("--config", network_core(**fields))]
    assert "network core, 32 MAC/cycle" in lines[0]
    [memory] = [line for line in lines if line.startswith("memory: ")]
    assert memory.endswith("banks of 4,096 words of 4 bytes")
    [text] = [line for line in lines if line.startswith("operators of TensorFlow Lite, ")]
    names = set(text.partition("): ")[2].split(", "))
    assert names & {"SOFTMAX", "MUL of two maps", LSTM, OF_INT16} == has
    assert {"CONV_2D", "PRELU", "TRANSPOSE_CONV", "RESIZE_BILINEAR"} < names
    more = {line for line in lines if line.startswith("with ")}
    assert more == {f"with {f} = true in [network_core] also: {name}" for name, f in lacks.items()}


def test_no_option_is_named_that_a_core_cannot_have():
    [line] = operator_lines(NETWORKS_UP5K.config)
    assert "SOFTMAX" not in line and "MUL by constants" in line


def test_a_core_for_onnx_has_its_operators(info, network_core):
    text = info("--config", network_core(requantize="onnx"))[-1][0]
    assert text.startswith("operators of ONNX, ") and "QLinearConv" in text


def test_a_network_core_has_no_cycles_of_products(capsys, network_core):
    assert main(["info", "--config", network_core(), "--shape", "8x8x8"]) == 2
    assert "--shape must be for a product core" in capsys.readouterr().err


def test_each_kernel_that_is_lowered_has_its_names():
    """Those of int16 have the names of the same kernels."""
    assert set(KERNELS) == {kernel for kernel in LOWERINGS if not kernel.startswith(WIDE)}
