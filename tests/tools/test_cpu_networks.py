"""tools/cpu_networks.py: the table of networks on a processor, and its products in plain C."""

import ctypes
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tooling import load

import weft
from weft.host import GoldenTransport
from weft.ip import Ip
from weft.kit.build import build
from weft.kit.documents import header
from weft.kit.driver import driver
from weft.kit.files.weft_driver import compiler
from weft.models.c_code import c_files

TINY = "micro_speech_int8", "kws_int8", "resnet8_int8"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The module, with temporary files for its results."""
    module = load("cpu_networks")
    monkeypatch.setattr(module, "OUTPUT", tmp_path)
    module.saved = []
    monkeypatch.setattr(
        module.results, "save", lambda name, tables, **_: module.saved.append((name, *tables))
    )
    return module


def write_results(tool, names):
    for column, name in enumerate(names):
        for row, way in enumerate(tool.WAYS):
            cycles = dict.fromkeys(tool.WAYS[way], 1000 * row + column)
            (tool.OUTPUT / f"network-{way}-{name}.json").write_text(json.dumps(cycles))


def test_makes_the_record(tool, monkeypatch):
    monkeypatch.setenv("WEFT_NETWORKS", "/data")
    write_results(tool, ("digits_cnn", *TINY))
    assert tool.main(["table"]) == 0
    [(name, table)] = tool.saved
    assert name == "processor"
    assert [column["name"] for column in table["columns"]] == [
        "an inference of", "digits_cnn", *TINY
    ]
    assert table["rows"] == [
        ["plain C", 0, 1, 2, 3], ["driver, FIFO, 8x8x1", 1000, 1001, 1002, 1003],
        ["driver, DMA, 8x8x1", 2000, 2001, 2002, 2003],
        ["list of a network core, 4x4x4", 3000, 3001, 3002, 3003],
        ["... of which the core works", 3000, 3001, 3002, 3003],
        ["... load of the list, once", 3000, 3001, 3002, 3003],
    ]


def test_keeps_the_record_if_networks_are_missing(tool, monkeypatch, capsys):
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    write_results(tool, ("digits_cnn",))
    assert tool.main(["table"]) == 0
    assert tool.saved == []
    assert "| an inference of | digits_cnn |\n" in capsys.readouterr().out


def test_the_networks_are_known_by_their_folder(tool, monkeypatch):
    monkeypatch.setenv("WEFT_NETWORKS", "/data")
    assert tool.networks()[1:] == [Path(f"/data/{name}.tflite") for name in TINY]
    monkeypatch.delenv("WEFT_NETWORKS")
    assert tool.networks() == [tool.DIGITS]


@pytest.mark.parametrize("arguments", [[], ["measure"], ["measure", "wishbone"]])
def test_usage(tool, capsys, arguments):
    assert tool.main(arguments) == 2
    assert capsys.readouterr().err == (
        "usage: cpu_networks.py measure plain|axi|dma|list [NETWORK]\n"
        "       cpu_networks.py interrupts\n"
        "       cpu_networks.py table\n"
    )


def test_the_example_with_two_cores_compiles(tool, tmp_path):
    """With the headers of both drivers and networks, without a warning."""
    pytest.importorskip("tflite")
    one, two, files = tool.two_cores()
    for ip in (one, two):
        files |= driver(ip) | {f"{ip.name}_regs.h": header(ip)}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    command = [*compiler(), "-std=c99", "-Wall", "-Wextra", "-Werror", "-I.", "-c", "two_cores.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


BUGS = [
    ("plain_driver.c", "n + 1, s11", "n + 1, s01"),
    ("plain_driver.c", "row + 1 < p->m ? row + 1 : row", "row"),
    ("plain_driver.h", "(high < 0)", "0"),
    ("plain_layer.h", "first += zero * part->b[n];", ""),
    ("plain_layer.h", "place < 0 ? -place : 0", "0"),
]


@pytest.mark.parametrize("bug", [
    pytest.param(bug, marks=pytest.mark.slow if bug in (None, BUGS[0]) else pytest.mark.long)
    for bug in (None, *BUGS)
], ids=lambda bug: str(bug and bug[1])[:20])
def test_plain_c_computes_the_network(tool, tmp_path, bug):
    """Compiled for this machine; a network with a depthwise convolution, and a bug is seen."""
    pytest.importorskip("tflite")
    model = weft.load(tool.DIGITS)
    program = model.compile(tool.PLAIN)
    image = np.random.default_rng(3).integers(-128, 128, (40, 8, 8, 1), np.int8)
    with program.open(GoldenTransport(tool.PLAIN)) as session:
        wanted = session(image)
    kit = build(Ip(config=tool.PLAIN, bus="axi"))
    files = {path[7:]: data for path, data in kit.items() if path.startswith("driver/")}
    files |= c_files(model.graph, program)
    files["net.c"] = tool.in_plain_c(files["net.c"])
    for name in ("plain_driver.c", "plain_driver.h", "plain_layer.h"):
        files[name] = (tool.SOURCES / name).read_bytes()
    if bug:
        name, old, new = bug
        assert files[name].count(old.encode()) == 1
        files[name] = files[name].replace(old.encode(), new.encode())
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command = [*compiler(), "-O1", "-std=c99", "-shared", "-fPIC", "-fno-strict-aliasing"]
    command += ["-o", "net.so", "net.c", "plain_driver.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = ctypes.CDLL(str(tmp_path / "net.so")).digits_cnn_run
    found = np.zeros((40, 10), np.int8)
    for x, y in zip(image, found, strict=True):
        assert run(ctypes.create_string_buffer(1000), *map(pointer, (x, y))) == 0
    assert np.array_equal(found, wanted.reshape(found.shape)) == (bug is None)


def pointer(values):
    return ctypes.c_void_p(values.ctypes.data)
