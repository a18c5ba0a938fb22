"""Names of a file reach the terminal, a page and C code in a form that nothing obeys."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from digits import CNN

import weft
from weft.cli import main, quantize
from weft.hints import short, visible
from weft.host.emulated import GoldenTransport
from weft.models.c_code import c_files
from weft.models.errors import ModelError
from weft.models.report import report
from weft.models.report.interface import page

HOSTILE = "a\x1b[2J\n\u202eb\x9b\x7f\u2028*/<em>"
SHOWN = r"a\x1b[2J\n\u202eb\x9b\x7f\u2028*/<em>"


def test_escapes_what_is_not_printed():
    assert visible(HOSTILE) == SHOWN
    assert visible(SHOWN) == SHOWN
    assert visible("größe/日本 x") == "größe/日本 x"
    assert visible("\udcff\0\r\t\u200b") == r"\udcff\x00\r\t\u200b"
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert visible(b"a\xff\x1b") == r"a\xff\x1b"
    assert ModelError("x\x1b\n").args == (r"x\x1b\n",)


@pytest.fixture
def onnx_file(tmp_path):
    """A network whose input, output, operators and file have hostile names."""
    onnx = pytest.importorskip("onnx")
    from onnx_models import Builder

    b = Builder(seed=5)
    x = b.input(HOSTILE, [1, 4])
    model = onnx.ModelProto.FromString(b.bytes(b.node("Relu", b.node("Neg", x))))
    for node in model.graph.node:
        node.name = HOSTILE + node.op_type
    last = model.graph.node[-1]
    last.output[0] = model.graph.output[0].name = f"{HOSTILE}y"
    path = tmp_path / "net\x1b]0;\u202e.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def tflite_file(tmp_path):
    """The network for digits, with the names of its tensors replaced in their lengths."""
    pytest.importorskip("tflite")
    data = CNN.read_bytes()
    names = {tensor.name for tensor in weft.load(CNN).graph.tensors if len(tensor.name) >= 5}
    assert names
    for name in names:
        hostile = "\x1b\n\u202e".encode().ljust(len(name.encode()), b"z")
        data = data.replace(name.encode(), hostile)
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    return path


def golden(network):
    """A session of the network on the golden model."""
    program = network.compile("icebreaker")
    return program.open(GoldenTransport(program.target.array))


def is_plain(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("kind", ["onnx_file", "tflite_file"])
def test_commands_print_no_character_that_a_terminal_obeys(request, kind, capsys, tmp_path):
    path = str(request.getfixturevalue(kind))
    target = ["--board", "icebreaker"]
    program, html = tmp_path / "net.weft", tmp_path / "page.html"
    for words, code in (
        (["report", path, *target, "--html", str(html)], 0),
        (["report", path, *target, "--json"], 0),
        (["run", path, *target, "--layers", *(["--check", "ort"] if kind[0] == "o" else [])], 0),
        (["run", path, *target, "--input", str(path)], 2),
        (["compile", path, *target, "-o", str(program)], 0),
        (["run", str(program), "--layers"], 0),
    ):
        if "ort" in words:
            pytest.importorskip("onnxruntime")
        assert main(words) == code, words
        said = capsys.readouterr()
        assert is_plain(said.out), words
        # What takes long says so, on a machine that does more than this.
        lines = [line for line in said.err.splitlines() if not line.startswith("   ...  ")]
        assert is_plain(said.err) and len(lines) == (code == 2), words
    text = html.read_text(encoding="utf-8")
    assert is_plain(text) and "<em>" not in text


def test_an_input_has_the_name_of_the_file_and_the_one_that_is_printed(onnx_file, tmp_path):
    x = np.float32([[1, -2, 3, -4]])
    with golden(weft.load(onnx_file)) as session:
        for name in (HOSTILE, SHOWN):
            assert np.array_equal(session({name: x}), [[0, 2, 0, 4]])
    np.savez(tmp_path / "x.npz", **{HOSTILE: x})
    assert main(["run", str(onnx_file), "--board", "icebreaker", "--input",
                 str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npy")]) == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), [[0, 2, 0, 4]])


def test_messages_show_the_name(onnx_file):
    with golden(weft.load(onnx_file)) as session, pytest.raises(ValueError) as caught:
        session({"x\x1b": np.zeros((1, 4), np.float32)})
    assert str(caught.value) == f"inputs must be {SHOWN}, not x\\x1b"
    with pytest.raises(ModelError) as caught:
        weft.load(onnx_file, shapes={"other\x1b": (1,)})
    assert SHOWN in str(caught.value) and is_plain(str(caught.value))


def test_c_code_has_no_name_of_the_file(tflite_file):
    network = weft.load(tflite_file.read_bytes(), HOSTILE)
    program = network.compile("icebreaker")
    for name, data in c_files(network.graph, program, "my").items():
        assert all(c in "\t\n" or c.isprintable() for c in data.decode()), name
        assert "*/<em>" not in data.decode()


def test_a_page_shows_the_name(onnx_file):
    found = page(report(weft.load(onnx_file).compile("icebreaker")))
    assert is_plain(found)
    assert r"a\x1b[2J\n\u202eb\x9b\x7f\u2028*/&lt;em&gt;" in found


def test_a_table_shows_the_name(onnx_file, capsys):
    """Neither as a colour of the terminal, nor as the markup of the library that draws it."""
    row = SimpleNamespace(name=HOSTILE + "[red]", operator="\x1b", sqnr=1.0, cosine=0.5)
    agreement = SimpleNamespace(rows=[row], top1=1.0)
    quantize._print(agreement, onnx_file.name, 9, onnx_file, 3, "int8")
    said = capsys.readouterr().out
    assert is_plain(said)
    assert "".join(re.findall(r"^ *(\S+)", said, re.M)).count("[red]") == 1


def test_a_long_name_loses_its_middle():
    name = "".join(f"part{n:02};" for n in range(20))
    assert short(name) == name[:60] + "..." + name[-37:]
    assert short("x" * 100) == "x" * 100 and len(short("x" * 101)) == 100
    assert ModelError(f"operator {name} must be short").args == (
        f"operator {short(name)} must be short",
    )
