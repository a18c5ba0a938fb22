"""Program files: they run as the program did, and damaged or foreign ones are refused by name."""

import dataclasses
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import chain, convolution, fully_connected, graph_of, lstm, table_of, tensor
from products import integers
from program_files import changed

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.ir import Host
from weft.models.report import report

SMALL = Config(rows=3, cols=4, depth=2, lanes=2, a_words=128, b_words=256)


def every_kind():
    """A graph with each kind of work: core, host product, kernels with arrays and bytes."""
    rng = np.random.default_rng(1)
    tensors = [tensor((1, 4, 5, 4), zero=2, name="x"), tensor((1, 3, 4), np.int16)]
    nodes = [convolution(rng, 0, tensors, 1, groups=4)]
    nodes.append(fully_connected(rng, 2, tensors, 6, position=1))
    nodes.append(table_of(rng, 3, tensors, position=2))
    tensors.append(tensor((1, 4, 5, 6), data=None))
    nodes.append(Host(
        operator="RESHAPE", name="r", position=(3,), inputs=(4,), outputs=(5,), kernel="reshape",
        attributes={"shape": (1, 4, 5, 6), "a": 0.5, "b": b"bytes", "c": np.float32(2)},
        reason="moves",
    ))
    return graph_of(nodes, tensors)


@pytest.fixture(scope="module")
def program():
    return compile_graph(every_kind(), SMALL)


def refused(data, message):
    with pytest.raises(ModelError, match=message) as caught:
        weft.load(data, "net.weft")
    assert str(caught.value).startswith("net.weft")


def test_a_file_runs_as_the_program(program, contents, tmp_path):
    graph = every_kind()
    x = integers(np.random.default_rng(2), np.int8, 1, 4, 5, 4)
    path = tmp_path / "net.weft"
    path.write_bytes(contents)
    for loaded in (weft.load(path), weft.load(contents)):
        with loaded.open(GoldenTransport(SMALL)) as session:
            y, records = session(x, stats=True)
        np.testing.assert_array_equal(y, run_graph(graph, [x])[graph.outputs[0]])
        assert loaded.estimate == program.estimate == sum(
            (record.step.estimate for record in records[1:] if record.step.estimate),
            records[0].step.estimate,
        )
        assert loaded.steps[-1].work.attributes["b"] == b"bytes"


def test_equal_programs_give_equal_files(contents, tmp_path):
    compile_graph(every_kind(), SMALL).save(tmp_path / "again.weft")
    assert (tmp_path / "again.weft").read_bytes() == contents


def test_limits_follow_the_scale_of_an_output(program, tmp_path):
    """A step of a large output is large, and so is the difference that it allows."""
    path = tmp_path / "net.weft"
    for limit in (1e9, np.inf):
        exactness = dataclasses.replace(program.exactness, absolute=(limit,))
        dataclasses.replace(program, exactness=exactness).save(path)
        if np.isfinite(limit):
            assert weft.load(path).exactness == exactness
        else:
            refused(path.read_bytes(), "net.weft: exactness must have a finite limit for each out")


def test_a_product_on_the_host_runs_from_a_file(tmp_path):
    """A Config of the other data type leaves all products to the host."""
    graph = every_kind()
    config = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, c_words=64)
    path = tmp_path / "host.weft"
    compile_graph(graph, config).save(path)
    x = integers(np.random.default_rng(2), np.int8, 1, 4, 5, 4)
    with weft.load(path).open(GoldenTransport(config)) as session:
        np.testing.assert_array_equal(session(x), run_graph(graph, [x])[graph.outputs[0]])


def test_refuses_a_list_for_a_product_core(tmp_path):
    config = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, c_words=64)
    path = tmp_path / "host.weft"
    compile_graph(every_kind(), config).save(path)

    def change(main):
        step = main["program"]["fields"]["steps"][0]["fields"]
        assert step["work"]["class"] == "HostProduct"
        step["work"]["class"] = "ListProduct"
        step["placement"]["fields"]["on_weft"] = True

    refused(changed(path.read_bytes(), change), "step 0: lists must be for a network core")


def test_reading_and_running_import_no_parser(contents, tmp_path):
    (tmp_path / "net.weft").write_bytes(contents)
    code = (
        "import sys, numpy as np, weft\n"
        f"p = weft.load({str(tmp_path / 'net.weft')!r})\n"
        "from weft.host.emulated import GoldenTransport\n"
        "p.open(GoldenTransport(p.target.config))(np.zeros((1, 4, 5, 4), np.int8))\n"
        "wrong = {'tflite', 'onnx', 'onnxruntime', 'amaranth', 'matplotlib', 'rich'}\n"
        "assert not wrong & {*sys.modules}, wrong & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("main, message", [
    (lambda m: m.update(version=1), "version must be 12, not 1; compile the network again"),
    (lambda m: m.update(format="zip"), "format must be 'weft program'"),
    (lambda m: m.update(hash=1),
     "; the file is damaged, or of another version: compile the network again"),
    (lambda m: m["design"].update(rows=0), "rows must be in 1..64, not 0"),
    (lambda m: m["design"].update(rows=4), "the product core must have the hash"),
    (lambda m: m.update(program=[]), "program must be a Program"),
    (lambda m: m.update(program={"class": "os.system", "fields": {}}), "a class must be one of"),
    (lambda m: m["program"]["fields"].pop("mode"), "Program has missing or unknown fields: mode"),
    (lambda m: m["program"]["fields"].update(mode=3), "Program.mode must be str, not 3"),
    (lambda m: m["program"]["fields"].update(mode="x"), "mode must be one of tflite, single, onnx"),
    (lambda m: m["program"]["fields"].update(source="x"), "source must be one of tflite, onnx"),
    (lambda m: m["program"]["fields"]["target"]["fields"].update(baud=0), "baud must be above 0"),
    (lambda m: m.pop("program"), "program.json must have the key 'program'"),
    (lambda m: m.pop("hash"), "program.json must have the key 'hash'"),
    (lambda m: m.update(design=None), "design must be an object, not None"),
    (lambda m: m["program"]["fields"].update(outputs=[99]), "outputs must be tensors in 0..5"),
])
def test_refuses_a_wrong_program(contents, main, message):
    refused(changed(contents, main), message)


def first_step(**fields):
    def change(main):
        step = main["program"]["fields"]["steps"][0]["fields"]
        for name, value in fields.items():
            where = step["work"]["fields"] if name in step["work"]["fields"] else step
            where[name] = value

    return change


@pytest.mark.parametrize("fields, message", [
    ({"x": 9}, "step 0: x and b must be tensors in 0..5, not 9"),
    ({"x_shape": [1, 4, 5, 5]}, "step 0: x_shape must be the shape of x"),
    ({"flags": {"flags": 1 << 12}}, "step 0: flags must be supported"),
    ({"b_pages": [0]}, "step 0: weights must lie in the buffer"),
    ({"free": [3, 999]}, "step 0: pages must be in the buffer"),
    ({"early": 0}, "step 0: early must be a later step"),
    ({"copies": 3}, "step 0: copies must be 1 or 2"),
    ({"loads_table": True}, "step 0: a loaded table must be given"),
    ({"table": {"bytes": 0}}, "CoreWork.table must be numpy.ndarray | None, not b"),
    ({"outputs": []}, "step 0: a product must have one output"),
    ({"flags": {"flags": 18}}, "step 0: flags must be supported"),
    ({"placement": {"class": "Placement", "fields": {
        "on_weft": False, "reason": "", "field": "", "extra_bytes": 0,
    }}}, "step 0: on_weft must be True, as its work says"),
    ({"inputs": []}, "step 0: a product must have an input"),
])
def test_refuses_parts_that_do_not_fit(contents, fields, message):
    refused(changed(contents, first_step(**fields)), message)


def test_refuses_compressed_members(contents):
    deflated = changed(contents, compression=zipfile.ZIP_DEFLATED)
    refused(deflated, "member program.json must be stored, not compressed")


@pytest.mark.parametrize("name", ["../evil.bin", "/evil", "evil.py"])
def test_refuses_foreign_members(contents, name):
    buffer = io.BytesIO(contents)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, b"x")
    refused(buffer.getvalue(), "members must be program.json, 0.bin, 1.bin")


def test_refuses_a_wrong_checksum(contents):
    entry = max(zipfile.ZipFile(io.BytesIO(contents)).infolist()[1:], key=lambda e: e.file_size)
    data = bytearray(contents)
    data[entry.header_offset + 100] ^= 1
    refused(bytes(data), f"Bad CRC-32 for file '{entry.filename}'")


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + bytes(18), b"text" * 10])
def test_refuses_other_files(data):
    refused(data, "net.weft")


def test_damaged_files_are_refused_or_run(contents):
    """Seeded mutations: bytes of the file, and values of ``program.json``."""
    rng = np.random.default_rng(1)
    source = zipfile.ZipFile(io.BytesIO(contents))
    text = source.read("program.json")
    for _ in range(100):
        data = bytearray(contents)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        attempt(bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.2 else data))
    digits = [n for n, byte in enumerate(text) if chr(byte).isdigit()]
    for _ in range(150):
        changed_text = bytearray(text)
        for _ in range(rng.integers(1, 3)):
            changed_text[digits[rng.integers(len(digits))]] = rng.integers(48, 58)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in source.namelist():
                whole = changed_text if name == "program.json" else source.read(name)
                archive.writestr(name, whole)
        attempt(buffer.getvalue())


WRONG = (None, True, -1, 1 << 40, "x", [], {}, {"map": {}}, {"float": "nan"}, {"dtype": "int8"})


def test_keys_of_wrong_types_are_refused_or_run(contents):
    """Seeded mutations: each changes or removes one value of ``program.json``."""
    rng = np.random.default_rng(2)
    for _ in range(150):
        def damage(main):
            node, key = main, str(rng.choice(list(main)))
            while isinstance(node[key], dict | list) and node[key] and rng.random() < 0.9:
                node = node[key]
                key = rng.choice(list(node)) if isinstance(node, dict) else rng.integers(len(node))
                key = key.item() if isinstance(node, list) else str(key)
            if rng.random() < 0.3:
                del node[key]
            else:
                node[key] = WRONG[rng.integers(len(WRONG))]

        attempt(changed(contents, damage))


def attempt(data):
    """Load and run; only errors that name what is wrong are allowed."""
    try:
        program = weft.load(data, "net.weft")
    except ModelError as error:
        assert str(error).startswith("net.weft")
        return
    shapes = [program.tensors[number].shape for number in program.inputs]
    try:
        with program.open(GoldenTransport(program.target.array)) as session:
            session([np.zeros(shape, np.int8) for shape in shapes])
        str(report(program))
    except (ModelError, TypeError, ValueError, RuntimeError) as error:
        assert str(error)


def test_chain_file_is_small(tmp_path):
    """Weights are stored once, as the command stream carries them."""
    path = tmp_path / "chain.weft"
    program = compile_graph(chain(np.random.default_rng(3), (60, 120, 60)), SMALL)
    program.save(path)
    packed = sum(len(step.work.packed.b) for step in program.steps)
    assert packed == 2 * 60 * 120 and path.stat().st_size < packed + 16 * 180 + 24000


@pytest.fixture(scope="module")
def recurrent():
    """A graph of a recurrent layer, and the file of its program."""
    rng, tensors = np.random.default_rng(4), [tensor((1, 3, 5), zero=3, name="x")]
    return graph_of(lstm(rng, 0, tensors, 4), tensors)


@pytest.fixture(scope="module")
def recurrent_file(recurrent, tmp_path_factory):
    path = tmp_path_factory.mktemp("recurrent") / "net.weft"
    compile_graph(recurrent, SMALL).save(path)
    return path.read_bytes()


def test_a_recurrent_layer_runs_from_a_file(recurrent, recurrent_file):
    x = integers(np.random.default_rng(2), np.int8, 1, 3, 5)
    with weft.load(recurrent_file).open(GoldenTransport(SMALL)) as session:
        expected = run_graph(recurrent, [x])[recurrent.outputs[0]]
        np.testing.assert_array_equal(session(x), expected)


def second_work(**fields):
    """Change fields of the recurrent work, or of its product."""
    def change(main):
        work = main["program"]["fields"]["steps"][1]["fields"]["work"]["fields"]
        for name, value in fields.items():
            where = work if name in work else work["products"][0]["fields"]
            where[name] = value

    return change


@pytest.mark.parametrize("fields, message", [
    ({"kernel": "os.system"}, "step 1: kernel must be one of"),
    ({"steps": 0}, "step 1: it must have steps and products"),
    ({"products": []}, "step 1: it must have steps and products"),
    ({"mode": "onnx"}, "step 1: mode must be the mode of the program"),
    ({"x": 99}, "step 1: x must be tensors in 0..4, not 99"),
    ({"b": 0}, "step 1: products of a recurrent layer must have constant weights"),
    ({"x_shape": [1, 9]}, "step 1: x_shape must be the shape of x"),
    ({"early": 1}, "step 1: a recurrent layer must not load other weights"),
    ({"b_pages": [99]}, "step 1: weights must lie in the buffer"),
])
def test_refuses_a_recurrent_layer_that_does_not_fit(recurrent_file, fields, message):
    refused(changed(recurrent_file, second_work(**fields)), message)
