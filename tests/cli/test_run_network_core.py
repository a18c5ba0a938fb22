"""``weft run``, ``compile`` and ``report`` on a network core, which a TOML file describes."""

import json
import re

import numpy as np
import pytest
from digits import CNN
from faulty_pipe import End
from golden_network_board import PipedNetworkBoard
from tflite_files import T, build

import weft
from weft.cli import main
from weft.designs import design_from_toml
from weft.host.board import BoardTransport

CONFIG = """\
rows = 3
cols = 4
depth = 4
lanes = 2
requantize = "tflite"
activation = "none"

[network_core]
words = 2048
b_words = 256
lines = 64
read_vectors = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("tflite")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.tflite").write_bytes(CNN.read_bytes())
    (tmp_path / "network_core.toml").write_text(CONFIG)
    return tmp_path


def test_runs_and_checks_on_golden(folder, capsys):
    pytest.importorskip("tflite_micro")
    command = [
        "run", "net.tflite", "--config", "network_core.toml", "--layers", "--output", "y.npy"
    ]
    assert main([*command, "--check", "tflm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "net: 6 of 6 operators on Weft (100 % of 24,960 MAC); equal to TFLite Micro in mode tflite;"
        " network_core, whole network on the core: "
    )
    assert [line.split()[:2] for line in lines if "  CONV_2D" in line] == [
        ["0", "CONV_2D"], ["2", "CONV_2D+ADD"]
    ]
    assert lines[-1].endswith("all 10 values equal TFLite Micro")
    assert np.load("y.npy").shape == (1, 10)


def test_activations(folder, capsys):
    assert main(
        ["run", "net.tflite", "--config", "network_core.toml", "--activations", "a.npz"]
    ) == 0
    with np.load("a.npz") as found:
        assert sorted(found.files) == [f"out{n}" for n in range(6)]


@pytest.fixture
def divided(folder):
    """A file with SOFTMAX between two convolutions, one of which needs the host."""
    rng = np.random.default_rng(1)
    tensors = {"x": T((1, 6, 6, 4), scale=[0.1], zero=[4])}
    for name, x, zero in (("a", "x", 0), ("b", "p", 0)):
        tensors |= {
            f"w{name}": T(data=rng.integers(-128, 128, (8, 3, 3, 4 if x == "x" else 8), np.int8),
                          scale=[0.02], zero=[zero]),
            f"b{name}": T(data=np.arange(8, dtype=np.int32), scale=[0.002], zero=[0]),
            name: T((1, 6, 6, 8), scale=[0.5], zero=[-3]),
        }
    tensors["p"] = T((1, 6, 6, 8), scale=[1 / 256], zero=[-128])
    window = {"padding": 0, "strideW": 1, "strideH": 1}
    operators = [
        ("CONV_2D", ["x", "wa", "ba"], ["a"], ("Conv2DOptions", window)),
        ("SOFTMAX", ["a"], ["p"], ("SoftmaxOptions", {"beta": 1.0})),
        ("CONV_2D", ["p", "wb", "bb"], ["b"], ("Conv2DOptions", window)),
    ]
    (folder / "divided.tflite").write_bytes(build(tensors, operators, ["x"], ["b"]))
    return "divided.tflite"


def test_single_products(folder, capsys):
    """TRANSPOSE_CONV is no layer; the core computes its product between two lists."""
    pytest.importorskip("tflite_micro")
    rng = np.random.default_rng(1)
    tensors = {
        "x": T((1, 4, 4, 8), scale=0.1, zero=-3), "a": T((1, 4, 4, 8), scale=0.1, zero=2),
        "n": T(data=np.int32([2, 2, 4, 8])), "maps": T((2, 2, 4, 8), scale=0.1, zero=2),
        "y": T((2, 2, 4, 4), scale=0.2, zero=1),
    }
    for name, shape in (("wa", (8, 1, 1, 8)), ("w", (4, 1, 1, 8))):
        tensors[name] = T(data=rng.integers(-127, 128, shape).astype(np.int8), scale=0.01)
    tensors["ba"] = T(data=rng.integers(-900, 900, 8).astype(np.int32), scale=0.001)
    window = dict(padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    reshape = ("RESHAPE", ["a", "n"], ["maps"], ("ReshapeOptions", {}))
    data = build(tensors, [
        ("CONV_2D", ["x", "wa", "ba"], ["a"], ("Conv2DOptions", window)),
        reshape, ("CONV_2D", ["maps", "w", None], ["y"], ("Conv2DOptions", window)),
    ], ["x"], ["y"])
    (folder / "batch.tflite").write_bytes(data)
    command = ["batch.tflite", "--config", "network_core.toml"]
    assert main(["run", *command, "--layers", "--check", "tflm", "--fallback", "refuse"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "batch: 3 of 3 operators on Weft (100 % of 1,536 MAC); equal to TFLite Micro in mode"
        " tflite; network_core, one list and single products on the core: "
    )
    assert lines[1] == (
        "partly on the host: CONV_2D: its input must be one map, not a batch; the core computes its"
        " products one by one, over the link"
    )
    [row] = [line.split() for line in lines if " CONV_2D " in line][-1:]
    assert main(["report", *command, "--json", "--html", "batch.html"]) == 0
    facts = json.loads(capsys.readouterr().out)
    [product] = facts["products"]
    assert row[:5] == ["2", "CONV_2D", "products", str(product["jobs"]),
                       f"{product['cycles']:,}"]
    assert facts["cycles"] == product["cycles"] + sum(found["cycles"] for found in facts["lists"])
    assert "products" in (folder / "batch.html").read_text()


def test_several_lists(divided, capsys):
    pytest.importorskip("tflite_micro")
    command = [
        "run", divided, "--config", "network_core.toml", "--layers", "--activations", "a.npz"
    ]
    assert main([*command, "--check", "tflm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "divided: 2 of 3 operators on Weft (100 % of 31,104 MAC), 1 on the host (SOFTMAX);"
        " equal to TFLite Micro in mode tflite; network_core, 2 lists on the core: "
    )
    assert lines[1] == (
        "on the host: SOFTMAX: the core has no unit for it; a network core with softmax = true in"
        " [network_core] computes it"
    )
    assert ["1", "SOFTMAX", "host"] in [line.split()[:3] for line in lines]
    assert lines[-1].endswith("all 288 values equal TFLite Micro")
    with np.load("a.npz") as found:
        assert sorted(found.files) == ["out0", "out1", "out2"]
    assert main(["report", divided, "--config", "network_core.toml", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(found["cycles"] for found in facts["lists"]) == facts["cycles"]
    assert [found["positions"] for found in facts["lists"]] == [[[0]], [[2]]]
    assert facts["host"] == [
        {"operator": "SOFTMAX", "name": "p", "position": [1],
         "reason": "the core has no unit for it",
         "remedy": "a network core with softmax = true in [network_core] computes it"}
    ]
    # START twice; two WRITE, of 144 and of 288 bytes; each list's result has 288 bytes. Two ACKs of
    # 12 bytes for each list.
    assert facts["link"] == {"sent": 2 * 20 + 2 * 24 + 144 + 288, "received": 2 * (44 + 288)}


def test_compiles_a_program_that_runs(folder, capsys):
    assert main(["compile", "net.tflite", "--config", "network_core.toml", "-o", "net.weft"]) == 0
    assert main(["run", "net.weft", "--output", "y.npy"]) == 0
    assert main(["run", "net.tflite", "--config", "network_core.toml", "--output", "z.npy"]) == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.load("z.npy"))
    (folder / "other.toml").write_text(CONFIG.replace("words = 2048", "words = 4096"))
    assert main(["run", "net.weft", "--config", "other.toml"]) == 2
    assert "net.weft is compiled for network_core" in capsys.readouterr().err


@pytest.mark.parametrize("target", [[], ["--config", "network_core.toml"]])
def test_runs_on_a_board(folder, capsys, monkeypatch, target):
    """Without a target, the network is compiled for the core that answers."""
    board = PipedNetworkBoard(design_from_toml("network_core.toml"))
    end = End(board)
    monkeypatch.setattr(
        "weft.host.opening.open_transport", lambda *_, **__: BoardTransport(end, end)
    )
    assert main(["run", "net.tflite", *target, "--on", "/dev/board", "--output", "y.npy"]) == 0
    assert "\non /dev/board: 1,234 cycles (predicted " in capsys.readouterr().out
    assert end.ended
    assert main(["run", "net.tflite", "--config", "network_core.toml", "--output", "z.npy"]) == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.load("z.npy"))


def test_report(folder, capsys):
    assert main(["report", "net.tflite", "--config", "network_core.toml"]) == 0
    text = capsys.readouterr().out
    assert "memory: " in text and "link: 108 bytes to the core" in text
    assert main(["report", "net.tflite", "--config", "network_core.toml", "--json"]) == 0
    # WRITE with 64 bytes, START; two ACKs, DONE with 10 bytes. A frame has 12 bytes more, WRITE 24.
    found = json.loads(capsys.readouterr().out)
    assert [layer["operators"] for layer in found["layers"]] == [
        ["CONV_2D"], ["DEPTHWISE_CONV_2D"], ["CONV_2D", "ADD"], ["AVERAGE_POOL_2D"],
        ["FULLY_CONNECTED"],
    ]
    assert found["memory"] == 3 * 2048 * 4
    assert found["link"] == {"sent": 108, "received": 54}


def test_pages(folder, capsys):
    """Of the report, with a product core beside it; and with measured cycles."""
    command = ["report", "net.tflite", "--config", "network_core.toml", "--against", "ulx3s-85f"]
    assert main([*command, "--html", "p.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "page: p.html"
    rows = {line[:18].strip(): line.split()[-2:] for line in lines}
    assert rows["operators on Weft"] == ["of", "6"] and rows["MAC/cycle"] == ["48", "768"]
    assert "network_core and ulx3s-85f" in (folder / "p.html").read_text(encoding="utf-8")
    assert main(["run", "net.tflite", "--config", "network_core.toml", "--html", "r.html"]) == 0
    assert "<th>measured</th>" not in (folder / "r.html").read_text(encoding="utf-8")
    assert main(["report", "net.tflite", "--against", "network_core.toml"]) == 0
    assert "4 of 6" in capsys.readouterr().out


def test_batches(folder, capsys):
    x = np.random.default_rng(2).integers(-128, 128, (3, 8, 8, 1), np.int8)
    np.save("x.npy", x)
    command = ["run", "net.tflite", "--config", "network_core.toml", "--input", "x.npy", "--output"]
    assert main([*command, "a.npy"]) == main([*command, "b.npy", "--batch", "2"]) == 0
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))
    command = ["net.tflite", "--config", "network_core.toml", "--batch", "4"]
    assert main(["compile", *command, "-o", "net.weft"]) == 0
    assert weft.load("net.weft").batch == 4
    capsys.readouterr()
    assert main(["report", *command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["batch"] == 4


@pytest.mark.parametrize("command, message", [
    (["run", "net.tflite", "--board", "ulx3s-85f", "--batch", "2"],
     "batch must be 1 for a product core, not 2"),
    (["run", "net.tflite", "--config", "network_core.toml", "--on", "nothing"],
     "transport must be "),
    (["run", "net.tflite", "--config", "network_core.toml", "--on", "mem:0x10"],
     "offset must be a multiple of "),
])
def test_refuses_what_a_core_for_networks_lacks(folder, capsys, command, message):
    assert main(command) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("line, message", [
    ("word = 3", "word is not a field of [network_core]; the fields are words, b_words, lines, "),
    ("words = true", "words must be an integer, not True"),
    ("words = 100", "words must be a power of two in a network core, not 100"),
])
def test_wrong_fields_are_named(folder, capsys, line, message):
    text = CONFIG.replace("words = 2048\n", f"{line}\n", 1)
    (folder / "network_core.toml").write_text(text)
    assert main(["run", "net.tflite", "--config", "network_core.toml"]) == 2
    assert message in capsys.readouterr().err


def test_compiles_to_c_code(folder, capsys):
    command = [
        "compile", "net.tflite", "--config", "network_core.toml", "-o", "net.weft", "--c", "c"
    ]
    assert main([*command, "--prefix", "mm"]) == 0
    assert capsys.readouterr().out.endswith("c: net.c and net.h, with 3 other files\n")
    assert "int mm_net_load(mm_core *core);" in (folder / "c/net.h").read_text()


@pytest.mark.parametrize("on", ["golden", "/dev/board"])
def test_a_network_that_does_not_fit_runs_product_by_product(folder, capsys, monkeypatch, on):
    pytest.importorskip("tflite_micro")
    (folder / "small.toml").write_text(CONFIG.replace("words = 2048", "words = 64", 1))
    end = End(PipedNetworkBoard(design_from_toml("small.toml")))
    monkeypatch.setattr(
        "weft.host.opening.open_transport", lambda *_, **__: BoardTransport(end, end)
    )
    command = ["run", "net.tflite", "--config", "small.toml", "--on", on, "--layers"]
    assert main([*command, "--check", "tflm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"net: the memory must have [\d,]+ bytes \(.*\), and has 768: 3 banks of 64 words of 4"
        r" bytes\. .*\. The products run on the core one by one, over the link\.", lines[0]
    )
    assert lines[1].startswith("net: 4 of 6 operators on Weft (100 % of 24,960 MAC), 2 on the host")
    assert lines[1].endswith("; small: single products on the core")
    [cost] = [line for line in lines if " lists; " in line]
    assert cost.startswith("on ")
    pattern = r": [\d,]+ cycles of \d+ lists; [\d,]+ bytes to the core, [\d,]+ from it; "
    assert re.search(pattern, cost)
    assert lines[-1].endswith("all 10 values equal TFLite Micro")


def test_a_network_without_a_product_for_the_core_says_so(folder, capsys):
    from lstm_files import lstm

    data = lstm(np.random.default_rng(1), 1, 3, activation=1)  # RELU: TFLite Micro computes it
    (folder / "lstm.tflite").write_bytes(data)
    assert main(["run", "lstm.tflite", "--config", "network_core.toml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("The core has no product to compute.")
    assert lines[1].startswith("lstm: 0 of 1 operators on Weft (0 % of ")


def test_a_program_in_a_memory_behind_the_link_is_sent_once(folder, capsys, monkeypatch):
    design = CONFIG.replace("rows = 3", "rows = 2") + "program_words = 2048\n"
    (folder / "network_core.toml").write_text(design)
    board = PipedNetworkBoard(design_from_toml("network_core.toml"))

    def opened(*_, **__):
        end = End(board)
        return BoardTransport(end, end)

    monkeypatch.setattr("weft.host.opening.open_transport", opened)
    said = []
    for _ in range(2):
        assert main(["run", "net.tflite", "--on", "/dev/board"]) == 0
        said.append(re.search(
            r"^program memory: ([\d,]+) bytes sent, ([\d,]+) bytes were there$",
            capsys.readouterr().out, re.MULTILINE,
        ).groups())
    (sent, before), (again, found) = said
    assert (before, again) == ("0", "0") and sent == found != "0"
    board.place = lambda numbers: numbers & ~(1 << 7)
    board.program[:] = 0
    assert main(["run", "net.tflite", "--on", "/dev/board"]) == 2
    assert (
        "the program memory fails its test: address lines: byte addresses that differ by 0x200 are"
        " the same place" in capsys.readouterr().err
    )
