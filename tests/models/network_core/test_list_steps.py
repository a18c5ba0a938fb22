"""Products between the lists of a network: results, places, costs, failures."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import fully_connected, graph_of, lstm, tensor
from network_core_networks import NetworkBuilder
from network_cores import LARGE, MICRO, ODD, PROGRAM, SMALL, SPRAM, network_core_config
from products import integers
from program_files import changed
from rejects import rejects
from tflite_files import T, build, runner

import weft
from weft.host.list_plan import ProductSpace, block_sizes, whole_space
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.models.errors import ModelError, UnfitError
from weft.models.ir import Gemm
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.report import report
from weft.models.target import target_of
from weft.network_core.descriptors import ListError, ListReport

# A log of an odd number of jobs does not end with a beat of its program memory.
BEATS = network_core_config(
    2, 4, 4, 2, words=512, b_words=128, lines=64, read_vectors=4, program_words=2048
)
CHIPS = pytest.mark.parametrize(
    "config", [LARGE, SMALL, ODD, MICRO, SPRAM, PROGRAM], ids=lambda config: config.array.name
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def wide(rng):
    """A layer, a product with weights of 10 bits, and one that adds the map of the first one."""
    builder = NetworkBuilder(rng, (1, 5, 6, 3))
    first = builder.convolution(0, 8)
    x = builder.convolution(first, 8)
    builder.on_host()
    builder.dense(builder.add(builder.convolution(x, 8), first), 5)
    return builder.graph()


def same(graph, program, session, count=1, seed=3):
    """Compare a session with plain numpy."""
    x = integers(np.random.default_rng(seed), np.int8, count, *program.tensors[0].shape[1:])
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(session(x), np.concatenate(wanted))


@CHIPS
@pytest.mark.parametrize("batch", [1, 2])
def test_a_map_outlives_a_product(config, batch):
    graph = wide(np.random.default_rng(1))
    program = compile_network_core(graph, target_of(config), batch=batch)
    [step] = program.products
    assert step.operators == ("CONV_2D",) and len(program.segments) == 2
    with program.open("golden") as session:
        same(graph, program, session, 3)
        same(graph, program, session, 1, seed=4)


def test_rows_that_exceed_the_buffer_are_a_product():
    """The columns of a tile are half a vector, so its taps cannot be several jobs."""
    builder = NetworkBuilder(np.random.default_rng(2), (1, 9, 9, 3))
    x = builder.convolution(0, 16)
    builder.dense(x, 6)
    sizes = {"words": 2048, "read_vectors": 2}
    graph, config = builder.graph(), network_core_config(4, 2, 4, 2, b_words=100, **sizes)
    program = compile_network_core(graph, target_of(config))
    assert [step.operators for step in program.layers] == [("CONV_2D",)]
    [step] = program.products
    assert step.placement.reason == (
        "a job needs 648 words of B, and the buffer has 100: [network_core] b_words must be at"
        " least 648"
    )
    for b_words, products in ((647, 1), (648, 0)):
        config = network_core_config(4, 2, 4, 2, b_words=b_words, **sizes)
        assert len(compile_network_core(graph, target_of(config)).products) == products
    assert step.products[0].k == 9 * 9 * 16
    with program.open("golden") as session:
        same(graph, program, session)


def test_rows_that_exceed_the_buffer_are_several_jobs():
    """324 words in 100: all of the network is one list."""
    builder = NetworkBuilder(np.random.default_rng(2), (1, 9, 9, 3))
    builder.dense(builder.convolution(0, 16), 6)
    config = network_core_config(4, 4, 4, 4, words=2048, b_words=100)
    program = compile_network_core(builder.graph(), target_of(config))
    assert not program.host and len(program.segments) == 1
    assert [step.jobs > 6 for step in program.layers] == [False, True]
    with program.open("golden") as session:
        same(builder.graph(), program, session)


def test_a_pool_that_exceeds_the_buffer_is_several_jobs():
    builder = NetworkBuilder(np.random.default_rng(2), (1, 9, 9, 3))
    builder.dense(builder.pool(builder.convolution(0, 4), 9, 1), 6)
    config = network_core_config(4, 4, 4, 4, words=2048, b_words=64)
    program = compile_network_core(builder.graph(), target_of(config))
    assert not program.host and program.layers[1].jobs == 2
    with program.open("golden") as session:
        same(builder.graph(), program, session)


def layer_of(rng):
    """Tensors and operator of a convolution of x that is a layer."""
    tensors = {
        "x": T((1, 4, 4, 8), scale=0.1, zero=-3), "m": T((1, 4, 4, 8), scale=0.1, zero=2),
        "m_w": T(data=rng.integers(-127, 128, (8, 1, 1, 8)).astype(np.int8), scale=0.01),
        "m_b": T(data=rng.integers(-900, 900, 8).astype(np.int32), scale=0.001),
    }
    options = ("Conv2DOptions", dict(
        padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1
    ))
    return tensors, ("CONV_2D", ["x", "m_w", "m_b"], ["m"], options)


def of_a_batch(rng):
    tensors, layer = layer_of(rng)
    tensors |= {
        "n": T(data=np.int32([2, 2, 4, 8])), "maps": T((2, 2, 4, 8), scale=0.1, zero=2),
        "w": T(data=rng.integers(-127, 128, (4, 1, 1, 8)).astype(np.int8), scale=0.01),
        "y": T((2, 2, 4, 4), scale=0.2, zero=1),
    }
    return tensors, [
        layer, ("RESHAPE", ["m", "n"], ["maps"], ("ReshapeOptions", {})),
        ("CONV_2D", ["maps", "w", None], ["y"], layer[3]),
    ], 2 * 2 * 4 * 4 * 8


def filter_in_time(rng):
    tensors, layer = layer_of(rng)
    tensors |= {
        "n": T(data=np.int32([1, 128])), "flat": T((1, 128), scale=0.1, zero=2),
        "f": T(data=rng.integers(-128, 128, (8, 128)).astype(np.int8), scale=0.01),
        "t": T(data=rng.integers(-3000, 3000, (8, 4)).astype(np.int16), scale=0.0001),
        "b": T(data=rng.integers(-900, 900, 4).astype(np.int32), scale=1e-7),
        "s": T((1, 32), "int16", scale=0.001, variable=True), "y": T((1, 4), scale=0.02),
    }
    options = "SVDFOptions", {"rank": 2, "fusedActivationFunction": 1}
    return tensors, [
        layer, ("RESHAPE", ["m", "n"], ["flat"], ("ReshapeOptions", {})),
        ("SVDF", ["flat", "f", "t", "b", "s"], ["y"], options),
    ], 8 * 128


@pytest.mark.parametrize("make", [of_a_batch, filter_in_time])
@pytest.mark.parametrize("config", [LARGE, MICRO, PROGRAM])
def test_products_that_are_no_layers(rng, make, config, tmp_path):
    """Two calls of each: states last. A program file has these products, too."""
    tensors, operators, macs = make(rng)
    data = build(tensors, operators, ["x"], ["y"])
    program = weft.load(data, "net").compile(config)
    [step] = program.products
    assert step.macs == macs and step.placement.on_weft
    oracle = runner(data)
    x = rng.integers(-128, 128, (3, 4, 4, 8)).astype(np.int8)
    expected = [oracle(row[None])[0] for row in x]
    program.save(tmp_path / "net.weft")
    for found in (program, weft.load(tmp_path / "net.weft")):
        with found.open("golden") as session:
            for row, y in zip(x, expected, strict=True):
                np.testing.assert_array_equal(session(row[None]), y)


def test_words_of_16_bits(rng):
    """A product of two bytes, beside a layer: two inputs and two outputs."""
    tensors, layer = layer_of(rng)
    tensors |= {
        "z": T((1, 8), "int16", scale=0.001), "y": T((1, 6), "int16", scale=0.002),
        "w": T(data=rng.integers(-127, 128, (6, 8)).astype(np.int8), scale=0.01),
        "b": T(data=rng.integers(-90000, 90000, 6).astype(np.int64), scale=0.00001),
    }
    dense = ("FULLY_CONNECTED", ["z", "w", "b"], ["y"], ("FullyConnectedOptions", {}))
    data = build(tensors, [layer, dense], ["x", "z"], ["m", "y"])
    program = weft.load(data, "net").compile(LARGE, batch=2)
    assert [step.operators for step in program.products] == [("FULLY_CONNECTED",)]
    assert program.products[0].products[0].m == 2
    oracle = runner(data, 2)
    x = rng.integers(-128, 128, (3, 4, 4, 8)).astype(np.int8)
    z = rng.integers(-32768, 32768, (3, 8)).astype(np.int16)
    expected = [oracle(a[None], b[None]) for a, b in zip(x, z, strict=True)]
    with program.open("golden") as session:
        for found, wanted in zip(session([x, z]), zip(*expected, strict=True), strict=True):
            np.testing.assert_array_equal(found, np.concatenate(wanted))


def test_a_recurrent_layer_asks_at_each_step():
    rng, tensors = np.random.default_rng(1), [tensor((1, 3, 5))]
    nodes = lstm(rng, 0, tensors, 4)
    nodes.append(fully_connected(rng, nodes[-1].outputs[0], tensors, 6, position=len(nodes)))
    graph = graph_of(nodes, tensors)
    program = compile_network_core(graph, target_of(LARGE))
    assert [step.estimate.jobs for step in program.products] == [1, 3]
    x, states = integers(rng, np.int8, 2, 3, 5), {}
    wanted = [run_graph(graph, [row[None]], states)[graph.outputs[0]] for row in x]
    with program.open("golden") as session:
        for _ in range(2):
            found = session(x)
            np.testing.assert_array_equal(found.reshape(2, -1), np.stack(wanted).reshape(2, -1))
            session.reset()


def test_products_of_floats_are_the_hosts():
    rng, tensors = np.random.default_rng(1), [tensor((1, 4), np.float32), tensor((1, 4))]
    weights = rng.normal(size=(1, 4, 4)).astype(np.float32)
    tensors += [tensor((1, 4), np.float32)]
    product = Gemm(
        operator="FULLY_CONNECTED", name="f", position=(0,), inputs=(0,), outputs=(2,), x=0,
        weights=weights,
    )
    nodes = [product, fully_connected(rng, 1, tensors, 6, position=1)]
    graph = graph_of(nodes, tensors, inputs=(0, 1), outputs=(2, 3))
    program = compile_network_core(graph, target_of(LARGE))
    assert not program.products and [step.operators for step in program.host] == [
        ("FULLY_CONNECTED",)
    ]


@pytest.mark.parametrize("config", [PROGRAM, BEATS], ids=lambda config: config.array.name)
def test_products_of_a_core_with_a_program_memory(config, tmp_path):
    """Their lists and weights lie behind the program and its log, their operands behind the maps.
    """
    graph = wide(np.random.default_rng(1))
    program = compile_network_core(graph, target_of(config))
    runner, space, depth = GoldenRunner(config), program.products_space, config.array.depth
    behind = program.log + program.areas["log"] // depth
    assert space.program_first % config.read_vectors == 0
    assert space.program_first - behind == (0 if config is PROGRAM else 2)
    assert space.first * depth == program.areas["maps"]
    assert program.memory_used == (space.first + space.vectors) * depth
    end = (space.program_first + space.program_vectors) * depth
    assert program.program_memory_used == end <= config.program_bytes
    with program.open(runner) as session:
        before = runner.program.copy()
        same(graph, program, session)
        written = runner.program[space.program_first * depth : end]
        assert (written != before[space.program_first * depth : end]).any()
        written[:] = before[space.program_first * depth : end]
        np.testing.assert_array_equal(runner.program, before)
        assert (runner.memory[program.memory_used :] == 0x5A).all()
    line, *lines = str(report(program)).splitlines()
    assert line.startswith("net: 5 of 5 operators on Weft (100 % of 42,240 MAC)")
    [areas] = [line for line in lines if line.startswith("memory: ")]
    assert f"product_lists {space.program_vectors * depth:,};" in areas
    assert "; all but maps and products are in the program memory: " in areas
    program.save(tmp_path / "net.weft")
    with weft.load(tmp_path / "net.weft").open("golden") as session:
        same(graph, program, session)


def test_a_program_memory_that_is_too_small_for_the_products():
    program = compile_network_core(wide(np.random.default_rng(1)), target_of(PROGRAM))
    runner, used = GoldenRunner(PROGRAM), program.program_memory_used
    runner.program_bytes = used - 1
    with rejects(AcceleratorError, (
        f"the program memory must have {used:,} bytes for net, not {used - 1:,}"
    )):
        program.open(runner)
    assert (runner.program == 0x5A).all()
    runner.program_bytes = used
    program.open(runner)
    free = program.log * PROGRAM.array.depth
    config = dataclasses.replace(PROGRAM, program_words=1 << (free // 12).bit_length() - 1)
    with pytest.raises(UnfitError, match="the program memory must have|single products need mem"):
        compile_network_core(wide(np.random.default_rng(1)), target_of(config))


def test_the_place_is_as_large_as_needed():
    program = compile_network_core(wide(np.random.default_rng(1)), target_of(LARGE))
    wanted, _ = whole_space(LARGE, 30, 72, 8, 4)
    assert program.areas["products"] == 8 * wanted
    space = program.products_space
    end = space.first + wanted
    assert space.vectors == wanted and end <= LARGE.vectors and program.memory_used == 8 * end
    # The memory does not limit the blocks.
    found, smaller = (
        block_sizes(LARGE, 30, 72, 8, 4, ProductSpace(0, size)) for size in (wanted, wanted - 1)
    )
    assert found.rows == 30 and smaller != found


def small_memory(size, words):
    builder = NetworkBuilder(np.random.default_rng(1), (1, size, size, 8))
    x = builder.convolution(builder.convolution(0, 8), 8)
    builder.on_host()
    builder.dense(builder.add(builder.convolution(x, 8), 1), 5)
    return builder.graph(), network_core_config(4, 4, 4, 4, words=words, b_words=128, lines=64)


@CHIPS
def test_the_smallest_product(config):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 1, 1, 1))
    builder.dense(builder.convolution(0, 1, kernel=(1, 1), padding=(0, 0, 0, 0)), 1)
    builder.on_host()
    graph = builder.graph()
    program = compile_network_core(graph, target_of(config))
    with program.open("golden") as session:
        same(graph, program, session)


def test_a_small_memory_divides_the_products():
    programs = []
    for words in (1024, 512):
        graph, config = small_memory(6, words)
        programs.append(compile_network_core(graph, target_of(config)))
        with programs[-1].open("golden") as session:
            same(graph, programs[-1], session)
    whole, program = programs
    assert whole.products[0].estimate.jobs == 1 < program.products[0].estimate.jobs
    assert program.memory_used == config.memory_bytes


def test_a_memory_without_room_for_products():
    graph, config = small_memory(7, 512)
    with pytest.raises(UnfitError, match="net: single products need memory of their own: .*"):
        compile_network_core(graph, target_of(config))


def test_report_and_placement():
    program = compile_network_core(wide(np.random.default_rng(1)), target_of(LARGE))
    found, [step] = report(program), program.products
    line, *lines = str(found).splitlines()
    assert line.startswith(
        "net: 5 of 5 operators on Weft (100 % of 42,240 MAC); equal to TFLite Micro in mode tflite;"
    )
    assert ", 2 lists and single products on the core: " in line
    table = [line.split() for line in lines]
    [row] = [cells for cells in table if cells[1:2] == ["CONV_2D"] and "products" in cells]
    assert row[2:5] == ["Weft", "17,280", "products"] and f"{step.estimate.cycles:,}" in row
    [reason] = [line for line in lines if line.startswith("partly on the host: CONV_2D: weights")]
    assert reason.endswith("; the core computes its products one by one, over the link")
    assert found.cycles == program.cycles == step.estimate.cycles + sum(
        segment.cycles for segment in program.segments
    )
    assert found.macs == 42240 and found.utilization <= 1
    facts = found.to_json()
    assert [layer["cycles"] for layer in facts["products"]] == [step.estimate.cycles]
    assert len(facts["layers"]) == 3 and facts["host"] == []


class Link(GoldenRunner):
    """Counts bytes; list number ``fails`` is lost, number ``wrong`` ends with an error."""

    fails, wrong, lists, sent = None, None, 0, 0

    def write(self, address, data, **form):
        self.sent += len(data)
        super().write(address, data, **form)

    def run(self, *addresses, **options):
        self.lists += 1
        if self.lists == self.fails:
            self.memory[:] = self.program[:] = 0  # power was lost
            self._buffers = type(self._buffers)(self.config)
            raise TransportError("lost")
        if self.lists == self.wrong:
            return ListReport(ListError.ADDRESS, 0)
        report = super().run(*addresses, **options)
        return dataclasses.replace(report, cycles=100)


@pytest.mark.parametrize("config", [LARGE, PROGRAM], ids=lambda config: config.array.name)
@pytest.mark.parametrize("fails", [1, 2, 3])
def test_works_again_after_a_failure(fails, config):
    """The second list is the one of the product."""
    graph = wide(np.random.default_rng(1))
    program, link = compile_network_core(graph, target_of(config)), Link(config)
    with program.open(link) as session:
        same(graph, program, session)
        assert session.cycles == 300 and link.lists == 3
        link.fails = 3 + fails
        with pytest.raises(TransportError, match="lost"):
            same(graph, program, session)
        same(graph, program, session, 2)


@pytest.mark.parametrize("config", [LARGE, PROGRAM], ids=lambda config: config.array.name)
def test_power_lost_after_a_product(config):
    """The list behind the product fails; then the product is sent again, though it is the same."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 4, 4, 3))
    x = builder.convolution(0, 8)
    builder.on_host()
    builder.convolution(x, 4)
    graph = builder.graph()
    program, link = compile_network_core(graph, target_of(config)), Link(config)
    assert program.segments[0].before == program.products and not program.setup
    with program.open(link) as session:
        link.fails = 2
        with pytest.raises(TransportError, match="lost"):
            same(graph, program, session)
        same(graph, program, session)


def test_names_the_operator_whose_product_fails():
    graph = wide(np.random.default_rng(1))
    program, link = compile_network_core(graph, target_of(LARGE)), Link(LARGE)
    with program.open(link) as session:
        link.wrong = 2
        with pytest.raises(AcceleratorError, match="a product: .* error ADDRESS"):
            same(graph, program, session)


def test_records_have_the_cycles_of_products():
    graph = wide(np.random.default_rng(1))
    program, link = compile_network_core(graph, target_of(LARGE), batch=2), Link(LARGE)
    x = integers(np.random.default_rng(3), np.int8, 2, 5, 6, 3)
    with program.open(link) as session:
        _, records = session(x, stats=True)
        assert [record.cycles for record in records if record.step in program.products] == [100]
    with program.open("golden") as session:
        _, records = session(x, stats=True)
        assert session.cycles is None and {record.cycles for record in records} == {None}


def test_bytes_on_the_link():
    """What the products send is as predicted: operands at random, all rows differ."""
    program, link = compile_network_core(wide(np.random.default_rng(1)), target_of(LARGE)), Link(
        LARGE
    )
    x = integers(np.random.default_rng(3), np.int8, 1, 5, 6, 3)
    [step], each = program.products, []
    with program.open(link) as session:
        session._host_runs[step], run = None, session._host_runs[step]

        def counted(*arguments):
            before = link.sent
            outcome = run(*arguments)
            each.append(link.sent - before)
            return outcome

        session._host_runs[step] = counted
        session(x)
    [sent] = each
    frames = step.estimate.bytes_in - sent
    assert 0 < frames < sent // 4


@pytest.mark.parametrize("change, message", [
    (lambda f: f["areas"]["map"].pop("products"), "areas must be .*products"),
    (lambda f: f["areas"]["map"].update(products=64), "products must fit their area"),
    (lambda f: f["segments"][1]["fields"]["before"][0]["fields"].update(estimate=None),
     "a product on the core must have an estimate"),
    (lambda f: f["segments"][1]["fields"]["before"][0]["fields"]["placement"]["fields"].update(
        on_weft=False), "areas must be|on_weft must be True"),
])
def test_a_file_with_other_products_is_refused(change, message, tmp_path):
    path = tmp_path / "net.weft"
    compile_network_core(wide(np.random.default_rng(1)), target_of(LARGE)).save(path)
    data = changed(path.read_bytes(), lambda main: change(main["program"]["fields"]))
    with pytest.raises(ModelError, match=message):
        weft.load(data, "net.weft")
