"""Programs for network cores: files, batches, and what is refused before it runs."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import fully_connected, graph_of, lstm, tensor
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from products import integers
from program_files import changed
from rejects import rejects

import weft
from weft.models.errors import ModelError, UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.image import _pieces
from weft.models.network_core.program import NetworkCoreProgram
from weft.models.target import target_of
from weft.network_core.descriptors import DESCRIPTOR_BYTES, ListLoad

CHIP = network_core_config(3, 4, 4, 2, words=512, b_words=64, lines=24, read_vectors=2)


SMALL_MEMORY = (
    r"net: the memory must have \d+,\d+ bytes \(maps .*, setup .*, list .*, weights .*,"
    r" parameters .*, tables .*, log .*; setup and maps share their place\), and has 1,536: 3 banks"
    r" of 128 words of 4 bytes"
)


def network():
    """A convolution, a pool, a matrix product, and SOFTMAX on the host."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))
    x = builder.pool(builder.convolution(0, 8), 2, 2)
    builder.host(
        builder.dense(x, 10), "SOFTMAX", "tflite.softmax", (1, 10), multiplier=1 << 30,
        left_shift=24, least=-124, dtype="int8",
    )
    return builder.graph()


def inputs(count):
    return np.random.default_rng(2).integers(-128, 128, (count, 6, 6, 3)).astype(np.int8)


def expected(graph, x):
    return np.concatenate([run_graph(graph, [row[None]])[graph.outputs[0]] for row in x])


def test_resident_weights_that_exceed_the_memory_come_in_parts():
    """Dense and depthwise weights of 9 KB, in a memory of 5 KB."""
    config = network_core_config(3, 8, 4, 2, words=256, b_words=512, lines=256, read_vectors=2)
    builder = NetworkBuilder(np.random.default_rng(3), (1, 3, 3, 16))
    x = builder.convolution(0, 1, kernel=(3, 3), groups=16)
    for outputs in (48, 40, 8):
        x = builder.dense(x, outputs)
    graph = builder.graph()
    program = compile_network_core(graph, target_of(config))
    assert len(program.setup) > 1
    assert all(len(part) <= config.memory_bytes for part in program.setup)
    x = np.random.default_rng(4).integers(-128, 128, (2, 3, 3, 16)).astype(np.int8)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected(graph, x))


@pytest.mark.parametrize("diagonal", [0, 1])
def test_a_long_load_becomes_several(diagonal):
    """A tap of a diagonal has two words: a load begins with the first one."""
    config = network_core_config(3, 8, 4, 2)
    each = 1 if diagonal else 8
    load = ListLoad(diagonal=diagonal, first_word=5, words=25, jobs=3)
    vectors = np.arange(25 * each * 4).astype(np.int8).reshape(-1, 4)
    pieces = list(_pieces(load, vectors, 10 * each + each // 2, config))
    assert [(piece.first_word, piece.words) for piece, _ in pieces] == [(5, 10), (15, 10), (25, 5)]
    assert {(piece.jobs, piece.diagonal) for piece, _ in pieces} == {(3, diagonal)}
    np.testing.assert_array_equal(np.concatenate([data for _, data in pieces]), vectors)
    odd = list(_pieces(load, vectors, 11 * each, config))
    assert [piece.words for piece, _ in odd] == ([10, 10, 5] if diagonal else [11, 11, 3])


@pytest.fixture(scope="module")
def program():
    return compile_network_core(network(), target_of(CHIP))


def test_a_file_runs_as_the_program(contents, tmp_path):
    loaded = weft.load(contents, "net.weft")
    assert isinstance(loaded, NetworkCoreProgram)
    x = inputs(2)
    with loaded.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected(network(), x))
    loaded.save(tmp_path / "again.weft")
    assert (tmp_path / "again.weft").read_bytes() == contents


def test_a_file_of_several_lists(tmp_path):
    """With a product on the host."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3))
    x = builder.convolution(builder.softmax(builder.convolution(0, 8)), 8)
    builder.on_host()
    builder.convolution(x, 4, kernel=(1, 1), padding=(0, 0, 0, 0))
    graph = builder.graph()
    program = compile_network_core(graph, target_of(CHIP))
    assert len(program.segments) == 2
    program.save(tmp_path / "net.weft")
    x = inputs(2)
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        np.testing.assert_array_equal(session(x), expected(graph, x))


def test_a_recurrent_layer(tmp_path):
    rng, tensors = np.random.default_rng(1), [tensor((1, 3, 5))]
    nodes = lstm(rng, 0, tensors, 4)
    position = len(nodes)
    nodes.append(fully_connected(rng, nodes[-1].outputs[0], tensors, 6, position=position))
    graph = graph_of(nodes, tensors)
    compile_network_core(graph, target_of(CHIP)).save(tmp_path / "net.weft")
    x = integers(rng, np.int8, 2, 3, 5)
    states = {}
    wanted = [run_graph(graph, [row[None]], states)[graph.outputs[0]] for row in x]
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        found = session(x)
    assert len(session.program.segments) == 1 and len(session.program.host) == 2
    np.testing.assert_array_equal(found.reshape(2, -1), np.stack(wanted).reshape(2, -1))


def test_a_network_without_a_layer_is_refused():
    tensors = [tensor((1, 3, 5))]
    graph = graph_of(lstm(np.random.default_rng(1), 0, tensors, 4), tensors)
    text = (
        "net: a network core needs a product that is a layer; operator 0 (FULLY_CONNECTED"
        " fc0): its results must be of 8 bits"
    )
    with rejects(UnfitError, text):
        compile_network_core(graph, target_of(CHIP))


def test_a_batch_is_one_list():
    program = compile_network_core(network(), target_of(CHIP), batch=2)
    x = inputs(5)
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected(network(), x))
    assert program.jobs == 2 * sum(step.jobs for step in program.layers)


def test_float_values_use_the_scales_of_the_network(program):
    x = inputs(1)
    tensor = program.tensors[0]
    scale, zero = tensor.quantization.scale[0], tensor.quantization.zero[0]
    with program.open("golden") as session:
        y = session((x.astype(np.float32) - zero) * scale)
        whole = session(x)
    output = program.tensors[program.outputs[0]].quantization
    np.testing.assert_allclose(y, (whole - output.zero[0]) * output.scale[0], rtol=1e-6)


@pytest.mark.parametrize("config, message", [
    (dataclasses.replace(CHIP, words=128), SMALL_MEMORY),
    (network_core_config(3, 2, 4, 2, words=512, b_words=2, read_vectors=2), (
        r"net: .* \(CONV_2D n0\): a job needs 18 words of B, and the buffer has 2:"
        r" \[network_core\] b_words must be at least 18$"
    )),
])
def test_refuses_small_memories(config, message):
    with pytest.raises(ModelError, match=message):
        compile_network_core(network(), target_of(config))


def test_refuses_activations_of_shared_maps(program):
    with program.open("golden") as session, rejects(ModelError, (
        "net: activations need a program that is compiled with activations=True"
    )):
        session(inputs(1), activations=True)


def fields(main):
    """The fields of the program in ``program.json``."""
    return main["program"]["fields"]


def own(main):
    """The fields that only a network core has."""
    return main["design"]["network_core"]


def first_list(main):
    """The fields of the first list."""
    return fields(main)["segments"][0]["fields"]


def place(main, kind):
    """The fields of the first map of a kind of entries."""
    return first_list(main)[kind][0]["fields"]["place"]["fields"]


@pytest.mark.parametrize("main, message", [
    (lambda m: m.update(hash=1), "the network core must have the hash 1, not"),
    (lambda m: own(m).update(words=100), "program.json is damaged: words must be a power of"),
    (lambda m: own(m).update(word=1), "word is not a field of [network_core]"),
    (lambda m: m["design"].pop("network_core"), "the product core must have the hash"),
    (lambda m: fields(m).update(batch=0), "batch must be in 1..65535, not 0"),
    (lambda m: fields(m).update(mode="single"), "mode must be the one of the core"),
    (lambda m: fields(m).update(log=7), "the log must follow the lists"),
    (lambda m: fields(m).update(arena=7), "areas must have the sizes of their contents"),
    (lambda m: first_list(m).update(run_first=7), "lists must follow each other"),
    (lambda m: first_list(m).update(result_bytes=4), "the result must be as the list says"),
    (lambda m: first_list(m).update(results=[]), "DONE must carry the only result"),
    (lambda m: first_list(m).update(steps=[]), "a list must have layers"),
    (lambda m: fields(m)["areas"]["map"].update(extra=1), "areas must be list, log, maps"),
    (lambda m: place(m, "steps").update(first=10**6), "a map must lie in the area of maps"),
    (lambda m: place(m, "written").update(channels=7), "a map must lie in the area of maps"),
    (lambda m: first_list(m)["steps"][0]["fields"].update(jobs=2), "jobs must follow each other"),
    (lambda m: first_list(m)["written"][0]["fields"]["form"]["fields"].update(height=5),
     "a map must fit its form"),
    (lambda m: first_list(m)["results"][0]["fields"].update(tensor=99), "a tensor must be in 0.."),
])
def test_refuses_a_damaged_program(contents, main, message):
    with pytest.raises(ModelError) as caught:
        weft.load(changed(contents, main), "net.weft")
    assert str(caught.value).startswith("net.weft: ") and message in str(caught.value)


def test_refuses_a_damaged_list(program, contents):
    def members(data):
        if data == program.segments[0].run:
            return bytes([15, *data[1:]])
        return data

    with pytest.raises(ModelError, match="net.weft: a list is damaged: a descriptor must have"):
        weft.load(changed(contents, members=members), "net.weft")
    assert len(program.segments[0].run) > DESCRIPTOR_BYTES


def test_random_damage_is_refused_by_name(contents):
    rng = np.random.default_rng(3)
    for _ in range(60):
        data = bytearray(contents)
        for place_of in rng.integers(0, len(data), 3):
            data[place_of] = rng.integers(256)
        try:
            weft.load(bytes(data), "net.weft")
        except ModelError as error:
            assert str(error).startswith("net.weft")
