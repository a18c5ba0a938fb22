"""Weights beside a file, as today's exporters write them; no other file is ever opened."""

import os
import re

import numpy as np
import pytest
from onnx_models import Builder

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.errors import ModelError
from weft.models.onnx.agreement import ort
from weft.models.onnx.source import self_contained

F32 = np.float32
CONFIG = Config(rows=4, cols=4, depth=4, requantize="onnx")
pytestmark = pytest.mark.usefixtures("onnxruntime")


def model():
    """A product, LayerNormalization in onnxruntime, and a subgraph with a tensor of its own."""
    from onnx import helper, numpy_helper

    b = Builder(seed=220)
    y = b.node("MatMul", b.input("x", [2, 40]), b.weights(40, 30))
    y = b.node("LayerNormalization", y, b.weights(30), b.weights(30))
    inner = helper.make_graph(
        [helper.make_node("Mul", [y, "k"], ["s"])], "branch", [],
        [helper.make_tensor_value_info("s", 1, [2, 30])],
        [numpy_helper.from_array(b.rng.normal(size=30).astype(F32), "k")],
    )
    return b.model(b.node("If", np.asarray(True), then_branch=inner, else_branch=inner))


@pytest.fixture
def saved(tmp_path):
    """A file with all its tensors in another one; the model with all in itself."""
    import onnx

    whole = model().SerializeToString()
    onnx.save(onnx.ModelProto.FromString(whole), str(tmp_path / "net.onnx"),
              save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    assert (tmp_path / "net.onnx.data").stat().st_size > 4 * 40 * 30
    return tmp_path / "net.onnx", whole


def test_equal_to_the_model_with_all_in_itself(saved, tmp_path):
    path, whole = saved
    x = np.random.default_rng(1).normal(size=(2, 40)).astype(F32)
    network = weft.load(path)
    [[expected]] = ort(whole, [[x]], optimized=False)
    [[answer]] = ort(network.data, [[x]], optimized=False)  # as --check ort does
    assert np.array_equal(answer, expected)
    network.compile(CONFIG).save(tmp_path / "net.weft")
    path.with_name("net.onnx.data").unlink()
    path.unlink()
    with weft.load(tmp_path / "net.weft").open(GoldenTransport(CONFIG)) as session:
        np.testing.assert_allclose(session(x), expected, atol=1e-5)


def test_data_may_be_in_a_folder_and_behind_a_link_that_stays(saved):
    path, whole = saved
    folder = path.parent / "weights"
    folder.mkdir()
    path.with_name("net.onnx.data").rename(folder / "all")
    path.with_name("net.onnx.data").symlink_to("weights/all")
    assert weft.load(path).data == self_contained(whole, "net.onnx", path.parent)
    change(path, location="./weights/all")
    assert weft.load(path).graph.tensors


def test_the_model_may_be_named_relative_to_here(saved, monkeypatch):
    monkeypatch.chdir(saved[0].parent)
    assert weft.load("net.onnx").graph.nodes


def change(path, **entries):
    """Change entries of the data of the first tensor; None drops one."""
    import onnx

    file = onnx.ModelProto.FromString(path.read_bytes())
    tensor = file.graph.initializer[0]
    kept = [(e.key, e.value) for e in tensor.external_data if e.key not in entries]
    del tensor.external_data[:]
    for key, value in (*kept, *entries.items()):
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(file.SerializeToString())


def rejects(path, message):
    with pytest.raises(ModelError) as caught:
        weft.load(path)
    assert str(caught.value).startswith("net.onnx: tensor c0: ") and "\n" not in str(caught.value)
    assert re.search(re.escape(message), str(caught.value)), caught.value


@pytest.mark.parametrize("location", [
    "../net.onnx.data", "weights/../../net.onnx.data", "/etc/hostname", "..", "", "C:\\net.data",
    "..\\net.data", "\\\\server\\net.data", None,
])
def test_rejects_places_outside_the_folder(saved, location):
    change(saved[0], location=location)
    rejects(saved[0], "location of its data must be a path inside the folder of the model, not ")


def test_rejects_a_link_that_leads_out_of_the_folder(saved, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "data"
    other.write_bytes(bytes(9999))
    saved[0].with_name("data").symlink_to(other)
    saved[0].with_name("folder").symlink_to(other.parent)
    for location in ("data", "folder/data"):
        change(saved[0], location=location)
        rejects(saved[0], f"{location!r} must be in the folder of the model, but is a link that")


def test_rejects_what_is_no_regular_file(saved):
    """A FIFO has no reader: to open it would wait for ever."""
    os.mkfifo(saved[0].with_name("fifo"))
    saved[0].with_name("folder").mkdir()
    for location in ("fifo", "folder", "."):
        change(saved[0], location=location)
        rejects(saved[0], f"its data file {location!r} must be a regular file")


def test_rejects_a_loop_of_links_and_other_names(saved):
    saved[0].with_name("loop").symlink_to("loop")
    for location in ("loop", "a" * 5000, "a\0b"):
        change(saved[0], location=location)
        rejects(saved[0], "cannot be read: ")


def test_rejects_a_missing_file(saved):
    saved[0].with_name("net.onnx.data").unlink()
    rejects(saved[0], "its data file 'net.onnx.data' must be beside the model, but does not exist")


def test_rejects_a_short_file(saved):
    data = saved[0].with_name("net.onnx.data")
    data.write_bytes(data.read_bytes()[:4799])
    rejects(saved[0], "its data file 'net.onnx.data' must have at least 4800 bytes, not 4799")


@pytest.mark.parametrize("entries, message", [
    ({"offset": "-4"}, "offset of its data must be a number of 1 to 18 digits, not '-4'"),
    ({"offset": "9" * 5000}, "offset of its data must be a number of 1 to 18 digits, not '999"),
    ({"offset": ""}, "offset of its data must be a number of 1 to 18 digits, not ''"),
    ({"offset": "9" * 18}, "must have at least 1000000000000004799 bytes, not "),
    ({"length": "-1"}, "length of its data must be a number of 1 to 18 digits, not '-1'"),
    ({"length": "4799"}, "must have 4800 bytes, as its shape says, not length 4799"),
    ({"length": "4801"}, "must have 4800 bytes, as its shape says, not length 4801"),
])
def test_rejects_other_places_in_the_file(saved, entries, message):
    change(saved[0], **entries)
    rejects(saved[0], message)


def test_offset_and_length_may_be_absent(saved):
    change(saved[0], offset=None, length=None)
    assert weft.load(saved[0]).graph.nodes


def test_rejects_two_locations(saved):
    import onnx

    file = onnx.ModelProto.FromString(saved[0].read_bytes())
    file.graph.initializer[0].external_data.add(key="location", value="net.onnx.data")
    saved[0].write_bytes(file.SerializeToString())
    rejects(saved[0], "its data must have one location, not two")


@pytest.mark.parametrize("field, value, message", [
    ("data_type", 8, "data in another file must be numbers"),
    ("data_type", 99, "data in another file must be numbers"),
    ("dims", [-40, 30], "sizes must be 0 or more, not (-40, 30)"),
])
def test_rejects_other_tensors(saved, field, value, message):
    import onnx

    file = onnx.ModelProto.FromString(saved[0].read_bytes())
    tensor = file.graph.initializer[0]
    if field == "dims":
        tensor.dims[:] = value
    else:
        tensor.data_type = value
    saved[0].write_bytes(file.SerializeToString())
    rejects(saved[0], message)


def test_rejects_more_than_a_model_may_have(saved):
    """Many tensors at the same place of a file that takes no room."""
    import onnx

    file = onnx.ModelProto.FromString(saved[0].read_bytes())
    with saved[0].with_name("net.onnx.data").open("r+b") as data:
        data.truncate(1 << 30)
    for _ in range(3):
        tensor = file.graph.initializer.add(data_type=1, dims=[1 << 28], data_location=1)
        tensor.external_data.add(key="location", value="net.onnx.data")
    saved[0].write_bytes(file.SerializeToString())
    with pytest.raises(ModelError, match="must have at most 2,147,483,647 bytes, not 3,2"):
        weft.load(saved[0])


def test_bytes_without_a_folder_say_what_to_do(saved):
    with pytest.raises(ModelError, match=(
        r"net.onnx: tensor c0 must be in the model itself, not in the file 'net.onnx.data'; load "
        r"the model by its path, which says the folder, or save it without external data"
    )):
        weft.load(saved[0].read_bytes(), "net")


def test_a_name_with_the_suffix_is_not_repeated():
    with pytest.raises(ModelError, match=r"^net\.onnx: must be an ONNX model"):
        weft.load(b"no model", "net.onnx")
    assert weft.load(model().SerializeToString(), "net.onnx").name == "net"
