"""``weft new``: arguments, the choice of the core for a network, and clear errors."""

from pathlib import Path

import numpy as np
import pytest
from onnx_models import Builder, require

from weft.cli import main
from weft.designs import design_from_toml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DIGITS = str(EXAMPLES / "digits_cnn.tflite")


def test_makes_a_project(here, capsys):
    assert main(["new", "icebreaker", "my project"]) == 0
    assert capsys.readouterr().out == (
        f"{here / 'my project'}: 10 files; type:\n  cd 'my project'\n  make lint sim run\n"
    )
    assert design_from_toml(here / "my project" / "design.toml").kind == "product core"


def test_makes_a_project_in_the_current_folder(here, capsys):
    assert main(["new", "icebreaker", "."]) == 0
    assert (here / "README.md").read_text().startswith(f"# {here.name}\n")


def test_makes_a_soc(here, capsys):
    assert main(["new", "--template", "litex", "my-soc"]) == 0
    assert capsys.readouterr().out == (
        f"{here / 'my-soc'}: 13 files; type:\n  cd my-soc\n  make lint sim run\n"
    )
    assert design_from_toml(here / "my-soc" / "design.toml").array.target == "ecp5"
    (here / "my-soc" / "main.c").write_text("/* mine */\n")
    assert main(["new", "--update", "my-soc"]) == 0
    assert capsys.readouterr().out == "main.c: kept, because you changed it\n"


def test_makes_an_ip_core(here, capsys):
    assert main(["new", "--template", "ip", "my core"]) == 0
    assert capsys.readouterr().out == (
        f"{here / 'my core'}: 10 files; type:\n  cd 'my core'\n  make lint sim run\n"
    )
    assert design_from_toml(here / "my core" / "design.toml").kind == "product core"
    (here / "my core" / "top.v").write_text("// mine\n")
    assert main(["new", "--update", "my core"]) == 0
    assert capsys.readouterr().out == "top.v: kept, because you changed it\n"


@pytest.mark.parametrize("board, options, kind, purpose", [
    ("icebreaker", [], "network core", "networks"),
    ("ulx3s-85f", ["--for", "networks"], "network core", "networks"),
    ("ecpix5-85f", [], "product core", ""),  # it has no network core
])
def test_the_core_fits_the_network(here, board, options, kind, purpose):
    assert main(["new", board, "mine", "--network", DIGITS, *options]) == 0
    assert design_from_toml(here / "mine" / "design.toml").kind == kind
    assert f'"purpose": "{purpose}"' in (here / "mine" / "project.json").read_text()
    assert (here / "mine" / "network.tflite").read_bytes() == Path(DIGITS).read_bytes()


@pytest.fixture
def onnx_files(here):
    """A network in ONNX: float.onnx, and int8.onnx that weft quantize made of it."""
    require("onnx", "onnxruntime")
    b = Builder(seed=9)
    y = b.node("Relu", b.node("MatMul", b.input("x", ["n", 8]), b.weights(8, 4)))
    (here / "float.onnx").write_bytes(b.bytes(y))
    np.savez("calib.npz", x=b.rng.normal(size=(8, 8)).astype(np.float32))
    assert main(["quantize", "float.onnx", "--data", "calib.npz", "-o", "int8.onnx"]) == 0


def test_a_network_that_no_network_core_computes_gets_the_product_core(here, capsys, onnx_files):
    capsys.readouterr()
    assert main(["new", "icebreaker", "mine", "--network", "int8.onnx"]) == 0
    assert "int8.onnx runs on the product core of icebreaker\n" in capsys.readouterr().out
    assert design_from_toml(here / "mine" / "design.toml").kind == "product core"
    assert main(["new", "icebreaker", "b", "--network", "int8.onnx", "--for", "networks"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(" computes it; --for products takes the product core\n")
    assert main(["boards", "int8.onnx"]) == 0
    rows = capsys.readouterr().out
    assert "Some network cores are left out. int8: a network core with requantize = 'tf" in rows
    assert rows.count("rounding of TensorFlow Lite") == 1 and " networks " not in rows
    assert " networks-onnx " in rows and "product by product" in rows


def test_a_network_of_onnx_gets_the_core_with_its_rounding(here, capsys, onnx_files):
    capsys.readouterr()
    assert main(["new", "ulx3s-85f", "mine", "--network", "int8.onnx"]) == 0
    assert design_from_toml(here / "mine" / "design.toml").array.requantize == "onnx"
    assert '"purpose": "networks-onnx"' in (here / "mine" / "project.json").read_text()
    capsys.readouterr()
    assert main(["new", "ulx3s-85f", "b", "--network", "int8.onnx", "--for", "networks"]) == 2
    assert capsys.readouterr().err.endswith(
        " computes it; --for networks-onnx takes such a core and --for products takes the product"
        " core\n"
    )
    assert main(["new", "ulx3s-85f", "b", "--network", DIGITS, "--for", "networks-onnx"]) == 2
    assert "; --for networks takes such a core and --for products" in capsys.readouterr().err


def test_a_float_network_names_the_command_that_makes_it_int8(here, capsys, onnx_files):
    capsys.readouterr()
    assert main(["new", "icebreaker", "mine", "--network", "float.onnx"]) == 2
    said = capsys.readouterr().err
    assert "must have an operator to compute, and it has none: " in said and said.count("\n") == 1
    assert "weft quantize makes an int8 network of the file" in said


def test_the_product_core_by_choice(here, capsys):
    assert main(["new", "icebreaker", "mine", "--network", DIGITS, "--for", "products"]) == 0
    assert design_from_toml(here / "mine" / "design.toml").kind == "product core"
    assert f"{DIGITS} runs on the product core of icebreaker\n" in capsys.readouterr().out


def test_the_contents_name_the_kind_of_the_file(here):
    Path("net.bin").write_bytes(Path(DIGITS).read_bytes())
    assert main(["new", "icebreaker", "mine", "--network", "net.bin"]) == 0
    assert (here / "mine" / "network.tflite").is_file()


def test_updates(here, capsys):
    assert main(["new", "icebreaker", "mine"]) == 0
    (here / "mine" / "Makefile").write_text("all:\n")
    (here / "mine" / "run.py").unlink()
    capsys.readouterr()
    assert main(["new", "--update", "mine"]) == 0
    assert capsys.readouterr().out == (
        "Makefile: kept, because you changed it\nrun.py: not made again, because you deleted it\n"
    )
    assert main(["new", "icebreaker", "other"]) == 0
    capsys.readouterr()
    assert main(["new", "--update", "other"]) == 0
    assert capsys.readouterr().out == "all files are as this Weft makes them\n"


@pytest.mark.parametrize("arguments, text", [
    ([], "weft new must have a board and a folder, not 0 names: weft new BOARD FOLDER"),
    (["icebreaker"], "weft new must have a board and a folder, not 1 names: weft new BOARD FOLDER"),
    (["icebraker", "mine"], "not 'icebraker'; did you mean icebreaker?"),
    (["icebreaker", "mine", "--for", "networks"],
     "--for must be with --network: it chooses the core for a network"),
    (["icebreaker", "mine", "--network", DIGITS, "--for", "x"],
     "--for of icebreaker must be networks or language, not 'x'"),
    (["icebreaker", "mine", "--network", "missing.tflite"], "missing.tflite"),
    (["ice40-hx8k-evn", "mine", "--network", DIGITS],
     f"; weft boards {DIGITS} lists the boards that hold it, and --for products takes the"),
    (["--template", "axi", "mine"], "template must be one of board, ip, litex, not 'axi'"),
    (["--template", "ip"], (
        "weft new --template ip must have one folder and no board, not 0 names:"
        " weft new --template ip FOLDER"
    )),
    (["--template", "ip", "icebreaker", "mine"], (
        "weft new --template ip must have one folder and no board, not 2 names:"
        " weft new --template ip FOLDER"
    )),
    (["--template", "ip", "mine", "--network", DIGITS],
     "--network must be without --template ip: it is for a board"),
    (["--template", "ip", "mine", "--for", "networks"],
     "--for must be without --template ip: it is for a board"),
    (["--template", "litex", "mine", "--network", DIGITS],
     "--network must be without --template litex: it is for a board"),
    (["--template", "ip", "full"], "/full is a folder with files"),
    (["--update", "full", "--template", "ip"],
     "--update must be with one folder at most: weft new --update FOLDER"),
    (["icebreaker", "full"], "/full is a folder with files"),
    (["--update", "full"], "project must have the file project.json, and full has none"),
    (["--update", "a", "b"],
     "--update must be with one folder at most: weft new --update FOLDER"),
    (["--update", "full", "--network", DIGITS],
     "--update must be with one folder at most: weft new --update FOLDER"),
])
def test_rejects_before_anything_is_written(here, capsys, arguments, text):
    (here / "full").mkdir()
    (here / "full" / "file").touch()
    assert main(["new", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("weft: error: ") and text in said.err
    assert said.err.count("\n") == 1 and said.out == ""
    assert [path.name for path in here.rglob("*")] == ["full", "file"]


def test_rejects_a_program(here, capsys):
    assert main(["compile", DIGITS, "--board", "icebreaker", "-o", "d.weft"]) == 0
    assert main(["new", "icebreaker", "mine", "--network", "d.weft"]) == 2
    text = "network must be a .tflite or .onnx file: d.weft is compiled already"
    assert text in capsys.readouterr().err
    assert not (here / "mine").exists()
