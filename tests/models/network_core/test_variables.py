"""Variables in the memory of a network core: streams of inferences against TFLite Micro."""

import itertools

import numpy as np
import pytest
from network_core_networks import NetworkBuilder
from network_cores import EARLY, LARGE, MICRO, PROGRAM, ROW, SIMULATED, network_core_config
from products import integers
from program_files import changed
from rejects import rejects
from streaming_files import (
    CONV,
    FRAME,
    POINT,
    SHAPE,
    assign,
    conv,
    expected_of,
    handle,
    maps,
    read,
    streaming_file,
    variables,
    weights,
)
from tflite_files import T, build, runner
from tiers import quick

import weft
from weft.host.emulated import ListTransport
from weft.host.recovery import AcceleratorError
from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.sim.network_core import SimulatedRunner

LOST = "net: the variables in the memory of the core are lost: "
REMEDY = "; reset() gives them their first values"


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def frames(count, seed=2):
    return integers(np.random.default_rng(seed), np.int8, count, *FRAME[1:])


def check_places(program):
    """No map lies in a part of a variable that is no ring."""
    others = [step.place for step in program.layers]
    others += [entry.place for part in program.segments for entry in part.written]
    for entry, other in itertools.product(program.variables, others):
        before, after = sorted([entry.place, other], key=lambda place: place.first)
        assert entry.place == other or before.first + before.pitches.vectors <= after.first


@pytest.fixture(scope="module")
def stream():
    """A file, inputs, and their outputs."""
    data, x = streaming_file(np.random.default_rng(1)), frames(40)
    [expected] = expected_of(data, x)
    assert len(np.unique(expected, axis=0)) > 20
    return data, x, expected


@pytest.mark.parametrize("config, eager", [
    (SIMULATED, True), (SIMULATED, False), (ROW, True), (PROGRAM, False),
])
def test_a_stream_is_one_list_a_step(stream, config, eager):
    data, x, expected = stream
    program = weft.load(data, "net").compile(config)
    assert len(program.segments) == 1 and not program.host and not program.host_states
    assert [entry.form.tensor for entry in program.segments[0].written] == list(program.inputs)
    assert [result.tensor for result in program.segments[0].results] == list(program.outputs)
    assert "the memory of the core keeps frames, mixes, tail" in program.notes
    assert not [step for step in program.steps if step.operators == ("ASSIGN_VARIABLE",)]
    with program.open(GoldenRunner(config, eager=eager)) as session:
        np.testing.assert_array_equal(session(x[:25]), expected[:25])
        np.testing.assert_array_equal(session(x[25:]), expected[25:])
        session.reset()
        np.testing.assert_array_equal(session(x[:3]), expected[:3])


@pytest.mark.slow
def test_1000_steps():
    data, x = streaming_file(np.random.default_rng(3)), frames(1000, 4)
    with weft.load(data, "net").compile(SIMULATED).open("golden") as session:
        np.testing.assert_array_equal(session(x), *expected_of(data, x))


@pytest.mark.parametrize("config", quick(1, [SIMULATED, EARLY, MICRO]))
def test_the_simulated_core_takes_the_predicted_cycles(stream, config):
    data, x, expected = stream
    program = weft.load(data, "net").compile(config)
    with program.open(SimulatedRunner(config)) as session:
        for row, wanted in zip(x[:8], expected, strict=False):
            np.testing.assert_array_equal(session(row[None])[0], wanted)
            assert session.cycles == program.cycles


def slice_of(begin, end):
    return {
        "begin": T(data=np.int32([0, begin, 0, 0])), "end": T(data=np.int32([1, end, 3, 8])),
        "step": T(data=np.int32([1, 1, 1, 1])),
    }


def delay_line(rng):
    """The second variable gets the old value of the first one."""
    tensors = variables("p", "q") | maps("x", "now", "old", "older", "y") | weights(rng)
    return tensors, [
        handle("p"), handle("q"), read("p", "old"), read("q", "older"), conv("x", "now"),
        assign("p", "now"), assign("q", "old"),
        ("ADD", ["now", "older"], ["y"], ("AddOptions", {})),
    ], {"p", "q"}


def exchanged(rng):
    """Two variables get each other's values, and a sum."""
    tensors = variables("p", "q") | maps("x", "old", "older", "s", "y") | weights(rng)
    return tensors, [
        handle("p"), handle("q"), read("p", "old"), read("q", "older"),
        ("ADD", ["older", "x"], ["s"], ("AddOptions", {})), conv("old", "y"),
        assign("p", "s"), assign("q", "old"),
    ], {"p", "q"}


def turned(rng):
    """A variable gets its own rows in another order."""
    tensors = variables("p") | maps("old", "all", "y") | weights(rng) | slice_of(1, 2)
    tensors |= maps("x", "last", shape=(1, 1, 3, 8))
    return tensors, [
        handle("p"), read("p", "old"),
        ("STRIDED_SLICE", ["old", "begin", "end", "step"], ["last"], ("StridedSliceOptions", {})),
        ("CONCATENATION", ["last", "x"], ["all"], ("ConcatenationOptions", {"axis": 1})),
        assign("p", "all"), conv("old", "y"),
    ], {"p"}


def constant(rng):
    """A variable that only CALL_ONCE writes; the second one gets its value."""
    tensors = variables("p", "q") | maps("x", "old", "older", "c", "y") | weights(rng)
    return tensors, [
        ("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1})),
        handle("p"), handle("q"), read("p", "old"), read("q", "older"), conv("x", "c"),
        ("ADD", ["c", "older"], ["y"], ("AddOptions", {})), assign("q", "old"),
    ], {"p", "q"}


def unchanged(rng):
    """A sum of a layer and a variable must not take the variable's place."""
    tensors = variables("p") | maps("x", "old", "c", "y") | weights(rng)
    return tensors, [
        ("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1})),
        handle("p"), read("p", "old"), conv("x", "c"),
        ("ADD", ["c", "old"], ["y"], ("AddOptions", {})),
    ], {"p"}


def own_window(rng):
    """The layer of the new value reads the old one in its window."""
    tensors = variables("p") | maps("x", "old", "s", "y") | weights(rng)
    return tensors, [
        handle("p"), read("p", "old"), conv("old", "s"),
        ("ADD", ["s", "x"], ["y"], ("AddOptions", {})), assign("p", "y"),
    ], {"p"}


def later_list(rng):
    """The host computes an operator between the new value and the last reader of the old one."""
    tensors = variables("p") | maps("x", "old", "c", "d", "y") | weights(rng)
    tensors["z"] = T(SHAPE, scale=1 / 128)
    return tensors, [
        handle("p"), read("p", "old"), conv("x", "c"), assign("p", "c"),
        ("L2_NORMALIZATION", ["c"], ["z"], ("L2NormOptions", {})), conv("z", "d"),
        ("ADD", ["d", "old"], ["y"], ("AddOptions", {})),
    ], {"p"}


def in_place(rng):
    """Only the layer of the new value reads the old one."""
    tensors = variables("p") | maps("x", "old", "c", "y") | weights(rng)
    return tensors, [
        handle("p"), read("p", "old"), conv("x", "c"),
        ("ADD", ["c", "old"], ["y"], ("AddOptions", {})), assign("p", "y"),
    ], {"p"}


def written_twice(rng):
    """An inference reads the value that it has written."""
    tensors = variables("p") | maps("x", "old", "c", "again", "s", "y") | weights(rng)
    return tensors, [
        handle("p"), read("p", "old"), conv("x", "c"), assign("p", "c"), read("p", "again"),
        ("ADD", ["again", "old"], ["s"], ("AddOptions", {})), assign("p", "s"),
        ("MUL", ["s", "factor"], ["y"], ("MulOptions", {})),
    ], {"p"}


def output(rng):
    """The host reads the old value of p, so only q stays in the memory."""
    tensors = variables("p", "q") | maps("x", "y", "older", "c") | weights(rng)
    return tensors, [
        handle("p"), handle("q"), read("p", "y"), read("q", "older"), conv("x", "c"),
        ("ADD", ["c", "older"], ["s"], ("AddOptions", {})), assign("p", "c"), assign("q", "s"),
    ], {"q"}


def an_input(rng):
    """The variable gets the input: the session has it."""
    tensors = variables("p") | maps("x", "old", "y") | weights(rng)
    return tensors, [
        handle("p"), read("p", "old"), conv("old", "y"), assign("p", "x"),
    ], set()


@pytest.mark.parametrize("config", quick(1, [LARGE, SIMULATED]))
@pytest.mark.parametrize("make", [
    delay_line, exchanged, turned, constant, unchanged, own_window, later_list, in_place,
    written_twice, output, an_input,
])
def test_all_ways_to_write_a_variable(rng, make, config):
    tensors, operators, kept = make(rng)
    tensors = maps("s") | {"factor": T(data=np.int8([40]), scale=0.02)} | tensors
    extra = []
    if make in (constant, unchanged):
        first = {"first": T(data=integers(rng, np.int8, *SHAPE), **POINT)} | variables("p")
        extra = [(first, [handle("p"), assign("p", "first")], [], [])]
    data = build(tensors, operators, ["x"], ["y"], extra=extra)
    x = integers(rng, np.int8, 9, *SHAPE[1:])
    if make is turned:
        x = x[:, :1]
    [expected] = expected_of(data, x)
    assert not np.array_equal(expected[-1], expected[-2])
    program = weft.load(data, "net").compile(config)
    host = {state.name for state in program.host_states}
    assert {state.name for state in program.states} - host == kept
    assert len(program.segments) == 1 + (make is later_list)
    check_places(program)
    for eager in (True, False):
        with program.open(GoldenRunner(config, eager=eager)) as session:
            np.testing.assert_array_equal(session(x), expected)
    copies = [step for step in program.steps if step.operators == ("ASSIGN_VARIABLE",)]
    assert len(copies) == {
        delay_line: 2, exchanged: 2, turned: 1, constant: 1, own_window: 1, later_list: 1,
    }.get(make, 0)


def test_the_host_has_variables_beside_activations(stream):
    data, x, expected = stream
    program = weft.load(data, "net").compile(SIMULATED, activations=True)
    assert not program.variables
    assert "the session writes and reads frames, mixes, tail" in program.notes
    with program.open("golden") as session:
        y, values = session(x[:5], activations=True)
    np.testing.assert_array_equal(y, expected[:5])
    np.testing.assert_array_equal(values["out1"][1:], values["out3"][:-1])


def test_a_small_memory_keeps_the_variables_of_the_layers(stream):
    data, x, expected = stream
    config = network_core_config(1, 4, 4, 2, words=512, b_words=256, lines=64, read_vectors=1)
    program = weft.load(data, "net").compile(config)
    assert [state.name for state in program.host_states] == ["frames"]
    assert {"the memory of the core keeps mixes, tail", "the session writes and reads frames"} <= {
        *program.notes
    }
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x[:6]), expected[:6])


def test_the_session_keeps_variables_beside_stripes(rng):
    row = {"scale": 0.05}
    tensors = variables("p") | {
        "x": T((1, 24, 24, 4), **row), "a": T((1, 22, 22, 16), scale=0.1),
        "c": T((1, 20, 20, 4), scale=0.2), "z": T((1, 4), **row), "old": T((1, 4), **row),
        "y": T((1, 4), **row),
    }
    for name, scale, shape in (("v", 0.05, (16, 3, 3, 4)), ("w", 0.1, (4, 3, 3, 16))):
        tensors[name] = T(data=rng.integers(-127, 128, shape).astype(np.int8), scale=0.01)
        tensors[f"{name}b"] = T(
            data=rng.integers(-900, 900, shape[0]).astype(np.int32), scale=scale / 100
        )
    data = build(tensors, [
        handle("p"), read("p", "old"), ("ADD", ["z", "old"], ["y"], ("AddOptions", {})),
        assign("p", "y"), ("CONV_2D", ["x", "v", "vb"], ["a"], CONV),
        ("CONV_2D", ["a", "w", "wb"], ["c"], CONV),
    ], ["x", "z"], ["c", "y"])
    x, z = integers(rng, np.int8, 3, 24, 24, 4), integers(rng, np.int8, 3, 4)
    oracle, kept = runner(data, 2), []
    expected = [oracle(one[None], other[None]) for one, other in zip(x, z // 4, strict=True)]
    for words in (2048, 1024):
        config = network_core_config(3, 4, 4, 2, words=words, b_words=256, lines=64, read_vectors=2)
        program = weft.load(data, "net").compile(config)
        kept.append(len(program.variables))
        with program.open("golden") as session:
            found = session([x, z // 4])
        for values, wanted in zip(found, zip(*expected, strict=True), strict=True):
            np.testing.assert_array_equal(values, np.concatenate(wanted))
    assert kept == [1, 0]


def test_two_sessions_on_one_core_do_not_mix(stream):
    data, x, expected = stream
    program, core = weft.load(data, "net").compile(SIMULATED), GoldenRunner(SIMULATED)
    one, two = program.open(core), program.open(core)
    np.testing.assert_array_equal(one(x[:2]), expected[:2])
    np.testing.assert_array_equal(two(x[:3]), expected[:3])
    lost = f"{LOST}another program or another session has used the core{REMEDY}"
    for _ in range(2):
        with rejects(AcceleratorError, lost):
            one(x[2:3])
    np.testing.assert_array_equal(two(x[3:5]), expected[3:5])  # the error has changed nothing
    one.reset()
    np.testing.assert_array_equal(one(x[:5]), expected[:5])
    with rejects(AcceleratorError, lost):
        two(x[5:6])


def test_products_on_the_same_core(stream):
    data, x, expected = stream
    core = GoldenRunner(SIMULATED)
    session = weft.load(data, "net").compile(SIMULATED).open(core)
    np.testing.assert_array_equal(session(x[:2]), expected[:2])
    a = integers(np.random.default_rng(1), np.int8, 5, 6)
    other = weft.Accelerator(ListTransport(core))
    assert np.array_equal(other.matmul(a, a.T), a.astype(int) @ a.T.astype(int))
    lost = f"{LOST}another program or another session has used the core{REMEDY}"
    with rejects(AcceleratorError, lost):
        session(x[2:3])
    session.reset()
    np.testing.assert_array_equal(session(x), expected)
    assert np.array_equal(other.matmul(a, a.T), a.astype(int) @ a.T.astype(int))


def test_sessions_without_variables_load_again():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    builder.dense(builder.convolution(0, 8), 6)
    program = compile_network_core(builder.graph(), target_of(SIMULATED))
    core, x = GoldenRunner(SIMULATED), integers(np.random.default_rng(2), np.int8, 1, 5, 5, 3)
    one = program.open(core)
    expected = one(x)
    core.write(0, bytes(range(256)) * 16)
    core._buffers.b[...] = 0
    np.testing.assert_array_equal(one(x), expected)


def test_a_call_that_fails_in_a_list_loses_the_variables(stream, monkeypatch):
    data, x, expected = stream
    core = GoldenRunner(SIMULATED)
    session = weft.load(data, "net").compile(SIMULATED).open(core)
    np.testing.assert_array_equal(session(x[:2]), expected[:2])
    with pytest.raises(TypeError, match="input x must be int8"):
        session(x[:1].astype(np.int32))
    np.testing.assert_array_equal(session(x[2:4]), expected[2:4])  # no list had begun
    run = core.run

    def fails(*arguments, **options):
        run(*arguments, **options)
        raise RuntimeError("lost power")

    monkeypatch.setattr(core, "run", fails)
    with pytest.raises(RuntimeError, match="lost power"):
        session(x[4:5])
    monkeypatch.undo()
    with rejects(AcceleratorError, f"{LOST}a call failed after it had started a list{REMEDY}"):
        session(x[4:5])
    session.reset()
    np.testing.assert_array_equal(session(x), expected)


def test_rejects_programs_whose_variables_do_not_fit(stream, tmp_path):
    data, x, expected = stream
    program, path = weft.load(data, "net").compile(SIMULATED), tmp_path / "net.weft"
    program.save(path)
    with weft.load(path).open("golden") as session:
        np.testing.assert_array_equal(session(x[:4]), expected[:4])

    def wrong(change):
        def changes(main):
            change(main["program"]["fields"]["variables"])
        return changes

    def moved(entries):
        entries[0]["fields"]["place"]["fields"]["first"] = 1 << 20

    def other(entries):
        entries[0]["fields"]["form"]["fields"]["tensor"] = program.outputs[0]

    for change, message in (
        (moved, "a map must lie in the area of maps"),
        (other, "a map of a variable must have the tensor of one"),
        (lambda entries: entries.append(entries[0]), "a variable must have one map"),
    ):
        with pytest.raises(ModelError, match=message):
            weft.load(changed(path.read_bytes(), wrong(change)), "net.weft")
