"""C code of networks for a network core: results on a model of its registers, and errors."""

import ctypes
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from c_network import shared_library, write_sources
from c_network_driver import CNetworkDriver, LoadedChipNetwork
from digits import CNN
from graph_runner import run_graph
from graphs import fully_connected, graph_of, lstm, tensor
from network_core_networks import NetworkBuilder, random_network
from network_cores import RESIDENT, SIMULATED, network_core_config
from network_registers import NetworkRegisterModel
from onnx_models import Builder, require
from rejects import rejects
from tflite_files import micro
from tiers import quick

import weft
from weft.models.c_code import network_core_c_files
from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of
from weft.network_core.ip import NetworkIp
from weft.network_core.register_map import REGISTERS

CHIP = network_core_config(3, 4, 4, 2)
NOT_LOADED, NULL, RANGE, ABORTED, REFUSED, IDLE, BUSY = -11, -3, -4, -6, -5, -14, 1


def inputs_of(program, count=2):
    shape = program.tensors[program.inputs[0]].shape
    rng = np.random.default_rng(7)
    return [rng.integers(-128, 128, shape, np.int8) for _ in range(count)]


def check_graph(folder, graph, config=CHIP):
    """Compare the results of a network's C code with the kernels of its operators."""
    program = compile_network_core(graph, target_of(config))
    network = LoadedChipNetwork(folder, program)
    assert network.load() == 0
    for x in inputs_of(program):
        error, y = network(x)
        assert error == 0
        np.testing.assert_array_equal(y, run_graph(graph, [x])[graph.outputs[0]].reshape(y.shape))
    return network


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    pytest.importorskip("tflite")
    program = weft.load(CNN).compile(SIMULATED)
    return LoadedChipNetwork(tmp_path_factory.mktemp("digits"), program)


def test_digits_equal_tflite_micro(digits):
    digits.device.reset()
    assert digits.program.setup  # weights that stay in the core
    assert digits.load() == 0
    for x in inputs_of(digits.program):
        error, y = digits(x)
        [expected] = micro(CNN.read_bytes(), [x])
        assert error == 0
        np.testing.assert_array_equal(y.ravel(), expected.ravel())
    assert f"takes {digits.program.cycles:,} cycles" in digits.header


def test_must_be_loaded(digits):
    [x] = inputs_of(digits.program, 1)
    assert digits.driver.call("init", None) == 0
    digits.driver.call("test_poll_limit", 300)
    assert digits(x)[0] == NOT_LOADED
    assert digits.load() == 0 and digits(x)[0] == 0
    digits.driver.call("abort")  # no list runs: the weights stay in the core
    assert digits(x)[0] == 0
    assert digits.start(x)[0] == 0
    digits.driver.call("abort")
    assert digits.finish() == ABORTED
    assert digits(x)[0] == NOT_LOADED
    assert digits.load() == 0
    digits.device.board.memory[:] = 0  # the lists are lost
    assert digits(x)[0] == -7  # OPCODE
    assert digits(x)[0] == NOT_LOADED
    assert digits.load() == 0
    digits.device.log.clear()
    lib, core = digits.driver.lib, digits.driver.core
    for run in (lib.digits_cnn_run, lib.digits_cnn_start):
        assert run(core, None, None) == run(None, None, None) == NULL
    assert lib.digits_cnn_load(None) == lib.digits_cnn_finish(None) == NULL
    assert {name for name, _ in digits.device.log} <= {"irq_enable"}


def test_no_wait_is_endless(digits):
    [x] = inputs_of(digits.program, 1)
    for stuck in ("list_busy", "write_fifo", "read_fifo"):
        digits.device.stuck = ""
        assert digits.driver.call("init", None) == 0
        digits.driver.call("test_poll_limit", 20)
        assert digits.load() == 0
        digits.device.stuck = stuck
        assert digits(x)[0] == -2
        assert digits(x)[0] == NOT_LOADED
    digits.device.stuck = ""
    assert digits.load() == 0 and digits(x)[0] == 0


class InterruptedCore(NetworkRegisterModel):
    """A core whose interrupt may come after any access to its registers.

    The handler runs again and again while the interrupt is high, as on a processor.
    """

    def __init__(self, config, list_time):
        super().__init__(config)
        self.list_time, self.handler, self.in_handler = list_time, None, False
        self.is_endless = False  # an exception would not pass through C code

    def read(self, address):
        value = super().read(address)
        self.interrupt()
        return value

    def write(self, address, value):
        started = self.board.running
        super().write(address, value)
        if self.board.running and not started:
            self.busy["list_busy"] = self.list_time
        self.interrupt()

    def interrupt(self):
        if self.handler is None or self.in_handler:
            return
        self.in_handler, runs = True, 0
        self._status()  # time passes
        while self.values["irq_status"] & self.values["irq_enable"] and not self.is_endless:
            self.handler()
            runs += 1
            self.is_endless = runs == 10
        self.in_handler = False


def graph_of_lists():
    """A network with operators of the host between its lists."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    x = builder.table(builder.softmax(builder.softmax(builder.convolution(0, 7))))
    y = builder.convolution(x, 8)
    z = builder.dense(builder.table(builder.add(builder.convolution(y, 7), x)), 6)
    builder.host(z, "RESHAPE", "reshape", (2, 3), shape=(2, 3))
    return builder.graph()


def interrupted(folder, list_time, changes=()):
    """Start inferences whose lists take so many accesses; the interrupt finishes them."""
    graph = graph_of_lists()
    device = InterruptedCore(CHIP, list_time)
    program = compile_network_core(graph, target_of(CHIP))
    network = LoadedChipNetwork(folder, program, device, changes=changes)
    assert network.load() == 0 and len(program.segments) > 1
    found = []
    device.handler = lambda: found.append(network.finish())
    for x in inputs_of(program):
        network.driver.call("irq_enable", 1)
        found.clear()
        error, y = network.start(x)
        assert error == 0
        for _ in range(100 * (list_time + 1)):
            if found and found[-1] != BUSY:
                break
            network.driver.call("is_busy")  # the thread does other work
        assert not device.is_endless, "the handler does not end"
        assert found == [BUSY] * (len(found) - 1) + [0]
        np.testing.assert_array_equal(y, run_graph(graph, [x])[graph.outputs[0]].reshape(y.shape))
        assert network.finish() == IDLE
    return network, found


@pytest.mark.parametrize("list_time", quick(2, [0, 2, 7, 1, 3]))
def test_interrupts_finish_an_inference(tmp_path, list_time):
    network, found = interrupted(tmp_path, list_time)
    [x] = inputs_of(network.program, 1)
    found.clear()
    assert network(x)[0] == 0  # waits, so no interrupt comes
    assert found == [] and network.device.values["irq_enable"] == 1


def test_the_example_of_the_documents(tmp_path):
    """The handler and the thread of the page compute an inference on a core with interrupts."""
    pytest.importorskip("tflite")
    page = (Path(__file__).parents[3] / "docs" / "networks.md").read_text()
    blocks = re.findall(r"^```c\n(.*?)^```", page, re.M | re.S)
    [example] = [block for block in blocks if "int infer(" in block]
    wait = "void wait_for_interrupt(void);\nint prepare(void *base);\n"
    wait += "void core_interrupt(void);\nint infer(const int8_t *input, int8_t *output);\n"
    more = (
        "int prepare(void *base)\n{\n    int error = weft_init(&core, base);\n"
        "    return error == WEFT_OK ? digits_cnn_load(&core) : error;\n}\n"
        "void wait_for_interrupt(void)\n{\n    (void)WEFT_REGISTER(&core, status);\n}\n"
    )
    program = weft.load(CNN).compile(SIMULATED)
    files = network_core_c_files(program) | {
        "example.c": example.replace("static weft_core core;", wait + "static weft_core core;")
        .encode() + more.encode()
    }
    device = InterruptedCore(SIMULATED, 5)
    ip = NetworkIp(config=SIMULATED, bus="axi")
    lib = CNetworkDriver(tmp_path, ip, device, files).lib
    assert lib.prepare(None) == 0
    calls = []
    device.handler = lambda: calls.append(lib.core_interrupt())
    for x in inputs_of(program):
        values, y = np.ascontiguousarray(x), np.zeros(10, np.int8)
        assert lib.infer(*(ctypes.c_void_p(one.ctypes.data) for one in (values, y))) == 0
        np.testing.assert_array_equal(y, micro(CNN.read_bytes(), [x])[0].ravel())
    assert len(calls) >= 2 and not device.is_endless


@pytest.mark.parametrize("bug", [
    ("offsetof(weft_t, irq_enable), 0);\n    error = weft_start",
     "offsetof(weft_t, irq_enable), enabled);\n    error = weft_start"),
    ("    running.between = 0;\n", ""),
    ("        running.list++;\n", ""),
], ids=["not masked", "always between", "the same list again"])
def test_the_interrupts_see_a_bug(tmp_path, bug):
    with pytest.raises(AssertionError):
        interrupted(tmp_path, 0, [bug])


def test_one_inference_at_a_time(tmp_path):
    graph = graph_of_lists()
    program = compile_network_core(graph, target_of(CHIP))
    network = LoadedChipNetwork(tmp_path, program)
    assert network.finish() == IDLE
    first, second = inputs_of(program)
    assert network.start(first)[0] == NOT_LOADED
    assert network.load() == 0
    error, y = network.start(first)
    assert error == 0
    memory, writes = network.device.board.memory.copy(), len(network.device.log)
    for how in ("start", "run"):
        keep = network.used
        assert network(second, how)[0] == REFUSED
        network.used = keep
    assert network.load() == REFUSED
    assert np.array_equal(network.device.board.memory, memory)
    assert {name for name, _ in network.device.log[writes:]} == {"irq_enable"}
    found = [network.finish() for _ in range(60)]
    ended = found.index(0)
    assert found == [BUSY] * ended + [0] + [IDLE] * (59 - ended)
    np.testing.assert_array_equal(y, run_graph(graph, [first])[graph.outputs[0]].reshape(y.shape))
    assert network(second)[0] == 0


def test_another_network_on_the_core(tmp_path):
    """A start of another network is refused while one runs; a reset ends it."""
    program = compile_network_core(graph_of_lists(), target_of(CHIP))
    network = LoadedChipNetwork(tmp_path, program)
    [x] = inputs_of(program, 1)
    assert network.load() == 0 and network.driver.call("write", 1200, None, bytes(128), 128) == 0
    assert network.driver.call("start", 1200, 1100) == 0  # a list of other software
    assert network.start(x)[0] == REFUSED and network.load() == REFUSED
    network.driver.call("abort")
    assert network.load() == 0 and network.start(x)[0] == 0
    assert network.driver.call("init", None) == 0
    assert network.finish() == ABORTED
    assert network.start(x)[0] == NOT_LOADED
    assert network.load() == 0 and network(x)[0] == 0


def test_operators_of_the_host_between_lists(tmp_path):
    network = check_graph(tmp_path, graph_of_lists())
    assert len(network.program.segments) > 1
    assert "net_softmax(" in network.source and "net_look_up(" in network.source


@pytest.mark.parametrize("case", [
    (7, 9, 1), (5, 7, 2), "many channels", 0, *(
        pytest.param(case, marks=pytest.mark.slow)
        for case in ((8, 10, 1), (9, 12, 1), (6, 23, 1), (7, 8, 2), 1)
    ),
])
def test_input_maps(tmp_path, case):
    if isinstance(case, tuple):  # space to depth, with pixels outside of the tensor
        height, width, channels = case
        builder = NetworkBuilder(np.random.default_rng(1), (1, height, width, channels))
        side = 1 - width % 2  # before the first column, so some rows begin at odd addresses
        x = builder.convolution(0, 4, kernel=(3, 3), stride=(2, 2), padding=(1, 1, side, 1))
        builder.dense(x, 5)
        network = check_graph(tmp_path, builder.graph())
        assert "&form" in network.source
        return
    if case == "many channels":  # pixels of more than 255 bytes
        builder = NetworkBuilder(np.random.default_rng(1), (3, 301))
        builder.dense(0, 9, rows=3)
        check_graph(tmp_path, builder.graph())
        return
    check_graph(tmp_path, random_network(np.random.default_rng(case)))


@pytest.mark.parametrize("stride", [1, 2])
def test_maps_of_onnx(tmp_path, stride):
    """The values of the tensors are planes; with a stride of 2, blocks of pixels of planes."""
    require("onnx")
    b = Builder()
    x = b.input("x", [1, 3, 7, 6], np.int8)
    w = b.rng.integers(-127, 128, (5, 3, 3, 2)).astype(np.int8)
    ends = np.float32(0.03), np.int8(-7)
    y = b.node("QLinearConv", x, *ends, w, np.float32(0.004), np.int8(0), *ends,
               strides=[stride, stride], pads=[1, 1, 0, 1])
    core = network_core_config(3, 4, 8, 2, requantize="onnx")
    program = weft.load(b.bytes(y, dtype=np.int8), "net.onnx").compile(core)
    network, session = LoadedChipNetwork(tmp_path, program), program.open("golden")
    assert network.load() == 0 and "net_read_planes(" in network.source
    for x in inputs_of(program):
        error, y = network(x)
        assert error == 0
        np.testing.assert_array_equal(y, session(x))


def test_names_and_memory(tmp_path):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 4, 4, 4))
    builder.softmax(builder.convolution(0, 4))
    graph = dataclasses.replace(builder.graph(), name="2 x")
    program = compile_network_core(graph, target_of(CHIP))
    network = LoadedChipNetwork(tmp_path, program, prefix="mm")
    assert "int mm_net_2_x_run(mm_core *core" in network.header
    sizes = re.findall(r"MM_NET_2_X_(\w+)_BYTES = (\d+)", network.header)
    found = {key: int(n) for key, n in sizes}
    assert (found["INPUT"], found["OUTPUT"]) == (64, 64)
    assert found["RAM"] == 65  # the map before SOFTMAX, and no row
    images = [*program.setup, *(segment.run for segment in program.segments)]
    assert found["CONSTANT"] == sum(map(len, images)) + 1024  # exponentials of SOFTMAX
    text = re.sub(r"\s+", "", (tmp_path / "net_data.h").read_text())
    first = text.split("run0[]NET_ALIGNED={")[1].split("}")[0]
    assert np.array([*map(int, first.split(","))], np.int8).tobytes() == images[len(program.setup)]


def test_a_driver_of_another_core_does_not_compile(tmp_path):
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    builder.dense(0, 4)
    program = compile_network_core(builder.graph(), target_of(CHIP))
    other = NetworkIp(config=network_core_config(3, 4, 4, 2, words=2048), bus="axi")
    write_sources(tmp_path, other, network_core_c_files(program))
    with pytest.raises(AssertionError, match="for another NetworkCoreConfig than the driver"):
        shared_library(tmp_path, [tmp_path / "net.c"], "-fsyntax-only")


def test_rejects_what_has_no_c_code():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    builder.dense(0, 4)
    program = compile_network_core(builder.graph(), target_of(CHIP), batch=2)
    with rejects(ModelError, "net: batch must be 1 for C code, not 2"):
        network_core_c_files(program)
    with rejects(ModelError, "prefix must not start with net, as names of the C code do, not net"):
        network_core_c_files(program, "net")
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8), np.uint8)
    builder.dense(0, 4)
    with rejects(ModelError, "net: tensor 0 must be int8 for C code, not uint8"):
        network_core_c_files(compile_network_core(builder.graph(), target_of(CHIP)))
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    y = builder.dense(0, 4)
    builder.host(y, "ARG_MAX", "arg_max", (1, 1), axis=1, dtype="int8", shape=(1, 1))
    text = "net: operator 1 (ARG_MAX n1): no C code: no C kernel for it"
    with pytest.raises(ModelError, match=re.escape(text)):
        network_core_c_files(compile_network_core(builder.graph(), target_of(CHIP)))
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    graph = builder.graph(builder.dense(0, 4), builder.dense(0, 3))
    with rejects(ModelError, "net: C code needs one output, the network has 2"):
        network_core_c_files(compile_network_core(graph, target_of(CHIP)))


@pytest.mark.slow
def test_digits_on_a_simulated_core(tmp_path):
    pytest.importorskip("tflite")
    from weft.sim.mmio import SimRegisters

    program = weft.load(CNN).compile(SIMULATED)
    registers = SimRegisters(NetworkIp(config=SIMULATED, bus="axi"))
    network = LoadedChipNetwork(tmp_path, program, registers)
    network.driver.call("test_poll_limit", 100_000)
    assert network.load() == 0
    for x in inputs_of(program):
        error, y = network(x)
        assert error == 0
        np.testing.assert_array_equal(y.ravel(), micro(CNN.read_bytes(), [x])[0].ravel())
    cycles = registers.read(4 * REGISTERS.index("net_cycles"))
    assert cycles == program.cycles
    registers.close()


@pytest.mark.long
def test_a_core_without_loads(tmp_path):
    """The C code writes weights, parameters and a table; what no memory has is refused."""
    from weft.sim.mmio import SimRegisters

    builder = NetworkBuilder(np.random.default_rng(1), (1, 24))
    builder.dense(builder.table(builder.dense(0, 20)), 9)
    graph = builder.graph()
    program = compile_network_core(graph, target_of(RESIDENT))
    registers = SimRegisters(NetworkIp(config=RESIDENT, bus="axi"))
    network = LoadedChipNetwork(tmp_path, program, registers)
    network.driver.call("test_poll_limit", 100_000)
    assert network.load() == 0
    for x in inputs_of(program):
        error, y = network(x)
        assert error == 0
        np.testing.assert_array_equal(y, run_graph(graph, [x])[graph.outputs[0]].reshape(y.shape))
    assert registers.read(4 * REGISTERS.index("net_cycles")) == program.cycles
    for region, vectors in enumerate(RESIDENT.regions):
        last = region * RESIDENT.region + vectors - 1
        assert network.driver.call("write", last, None, bytes(8), 8) == RANGE
        assert network.driver.call("write", last, None, bytes(4), 4) == 0
        refused = RANGE if region else 0
        assert network.driver.call("read", last, ctypes.create_string_buffer(4), 4) == refused
    registers.close()


def test_rejects_a_recurrent_layer_before_a_layer():
    rng, tensors = np.random.default_rng(1), [tensor((1, 3, 5))]
    nodes = lstm(rng, 0, tensors, 4)
    nodes.append(fully_connected(rng, nodes[-1].outputs[0], tensors, 6, position=len(nodes)))
    program = compile_network_core(graph_of(nodes, tensors), target_of(CHIP))
    text = r"net: operator 0 \(LSTM lstm0\): no C code: C code has no operators with a state"
    with pytest.raises(ModelError, match=text):
        network_core_c_files(program)


def test_one_network_for_two_cores_links(tmp_path):
    """Two prefixes share no symbol, and one C file includes both headers."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 8))
    builder.dense(0, 4)
    graph = dataclasses.replace(builder.graph(), name="same")
    program = compile_network_core(graph, target_of(CHIP))
    sources = []
    for prefix in ("weft", "mm"):
        folder = tmp_path / prefix
        folder.mkdir()
        ip = NetworkIp(config=program.config, bus="axi", prefix=prefix)
        sources += write_sources(folder, ip, network_core_c_files(program, prefix))
    main = tmp_path / "main.c"
    main.write_text(
        '#include "weft/net.h"\n#include "mm/net.h"\n'
        "int both(weft_core *a, mm_core *b, int8_t *x);\n"
        "int both(weft_core *a, mm_core *b, int8_t *x)\n"
        "{\n    return same_load(a) | mm_same_load(b)"
        " | same_run(a, x, x + SAME_INPUT_BYTES)"
        " | mm_same_run(b, x, x + MM_SAME_INPUT_BYTES);\n}\n"
    )
    library = shared_library(tmp_path, [main, *sources], f"-I{tmp_path}/weft", f"-I{tmp_path}/mm")
    assert ctypes.CDLL(str(library)).both
