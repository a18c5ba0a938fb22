"""Rings of frames in the memory of a network core, whose newest frames are a variable."""

import numpy as np
import pytest
from network_cores import LARGE, SIMULATED
from products import integers
from streaming_files import (
    POINT,
    SHAPE,
    assign,
    conv,
    expected_of,
    handle,
    maps,
    read,
    variables,
    weights,
)
from tflite_files import T, build
from tiers import quick

import weft

ONCE = ("CALL_ONCE", [], [], ("CallOnceOptions", {"initSubgraphIndex": 1}))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def ring(rng, axis=1, begin=None, order=("old", "c"), names=("p",)):
    """A variable with the last two frames, behind the newest one or before it."""
    whole = tuple(3 * n if place == axis else n for place, n in enumerate((1, 2, 3, 8)))
    older = tuple(2 * n if place == axis else n for place, n in enumerate((1, 2, 3, 8)))
    tensors = variables(*names) | maps("x", "c", "t") | weights(rng) | maps(
        "all", "y", shape=whole
    ) | maps("old", "new", "q_old", shape=older)
    first = [0] * 4
    first[axis] = SHAPE[axis] if begin is None else begin
    last = [start + size for start, size in zip(first, older, strict=True)]
    tensors |= {
        "begin": T(data=np.int32(first)), "end": T(data=np.int32(last)),
        "step": T(data=np.int32([1, 1, 1, 1])),
    }
    return tensors, [
        *map(handle, names), read(names[0], "old"), conv("x", "c"),
        ("CONCATENATION", [*order], ["all"], ("ConcatenationOptions", {"axis": axis})),
        ("STRIDED_SLICE", ["all", "begin", "end", "step"], ["new"], ("StridedSliceOptions", {})),
        *(assign(name, "new") for name in names), conv("all", "y"),
    ], {*names}


def ring_of_columns(rng):
    """The frames are columns; some pixels go to the row before."""
    return ring(rng, axis=2)


def ring_of_the_front(rng):
    """The newest frame comes first, so the older ones would move to later pixels."""
    return ring(rng, begin=0, order=("c", "old"))


def ring_with_a_second_reader(rng):
    """Another layer reads the old frames after the ring has moved."""
    tensors, operators, kept = ring(rng)
    tensors |= maps("early", "sum", shape=tensors["old"].shape)
    add = ("ADD", ["old", "new"], ["sum"], ("AddOptions", {}))
    tensors["all2"] = T(tensors["all"].shape, **POINT)
    operators += [add, ("CONCATENATION", ["sum", "c"], ["all2"], (
        "ConcatenationOptions", {"axis": 1},
    ))]
    operators[-3] = conv("all2", "y")
    return tensors, [*operators[:-3], *operators[-2:], operators[-3]], kept


def ring_of_results(rng):
    """The older frames change on their way, each one by all of its channels."""
    tensors, operators, kept = ring(rng, order=("changed", "c"))
    tensors |= maps("changed", shape=tensors["old"].shape)
    return tensors, [*operators[:2], conv("old", "changed"), *operators[2:]], kept


def ring_of_two_lists(rng):
    """The first list computes a frame, and the second one the next frame and the ring."""
    tensors, operators, kept = ring(rng, order=("old", "c", "d"), begin=4)
    tensors |= maps("d") | maps("all", "y", shape=(1, 8, 3, 8)) | {"norm": T(SHAPE, scale=1 / 128)}
    norm = ("L2_NORMALIZATION", ["c"], ["norm"], ("L2NormOptions", {}))
    return tensors, [*operators[:3], norm, conv("norm", "d"), *operators[3:]], kept


def ring_of_a_pool(rng):
    """Several layers compute the newest frame."""
    tensors, operators, kept = ring(rng, order=("old", "pooled"))
    tensors |= maps("pooled")
    pool = ("MAX_POOL_2D", ["c"], ["pooled"], ("Pool2DOptions", dict(
        padding=0, strideW=1, strideH=1, filterWidth=2, filterHeight=2
    )))
    return tensors, [*operators[:3], pool, *operators[3:]], kept


@pytest.mark.parametrize("config", quick(1, [SIMULATED, LARGE]))
@pytest.mark.parametrize("make, copies", [
    (ring, 0), (ring_of_columns, 0), (ring_of_a_pool, 0), (ring_of_the_front, 1),
    (ring_with_a_second_reader, 1), (ring_of_results, 1), (ring_of_two_lists, 1),
])
def test_a_ring_needs_no_copy_of_the_new_value(rng, make, copies, config):
    tensors, operators, _ = make(rng)
    data = build(tensors, operators, ["x"], ["y"])
    x = integers(rng, np.int8, 7, *SHAPE[1:])
    [expected] = expected_of(data, x)
    assert not np.array_equal(expected[-1], expected[-2])
    program = weft.load(data, "net").compile(config)
    assert [state.name for state in program.states] == ["p"] and not program.host_states
    assert len([s for s in program.steps if s.operators == ("ASSIGN_VARIABLE",)]) == copies
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(x), expected)
        session.reset()
        np.testing.assert_array_equal(session(x[:2]), expected[:2])
    if make is ring_of_a_pool:
        jobs = {step.operators: step.jobs for step in program.layers}
        assert jobs[("MAX_POOL_2D",)] == 4 and jobs[("CONCATENATION",)] == 1


def first_values(rng, data_of):
    """Run a network of two variables, whose first values differ; compare two outputs."""
    tensors, operators, name, shape = data_of
    values = {"first": T(data=integers(rng, np.int8, *shape), **POINT)} | variables(name)
    extra = [(values, [handle(name), assign(name, "first")], [], [])]
    data = build(tensors, [ONCE, *operators], ["x"], ["y", "z"], extra=extra)
    x = integers(rng, np.int8, 5, *SHAPE[1:])
    program = weft.load(data, "net").compile(SIMULATED)
    assert len(program.variables) == 2
    with program.open("golden") as session:
        for values, wanted in zip(session(x), expected_of(data, x, 2), strict=True):
            np.testing.assert_array_equal(values, wanted)


def test_two_variables_of_one_ring(rng):
    """They have the same new value, and other first ones."""
    tensors, operators, _ = ring(rng, names=("p", "q"))
    tensors |= maps("z", shape=tensors["old"].shape)
    operators = [*operators[:2], read("q", "q_old"), *operators[2:], conv("q_old", "z")]
    first_values(rng, (tensors, operators, "q", tensors["old"].shape))


def test_a_variable_with_the_whole_ring(rng):
    tensors, operators, _ = ring(rng)
    shape = tensors["all"].shape
    tensors |= variables("q") | maps("q_old", "z", shape=shape)
    operators = [
        *operators[:2], handle("q"), read("q", "q_old"), conv("q_old", "z"), *operators[2:],
        assign("q", "all"),
    ]
    first_values(rng, (tensors, operators, "q", shape))


def test_a_delay_line_in_a_ring(rng):
    """Each variable has a frame of it, and gets the one of the next variable."""
    tensors, operators, _ = ring(rng, order=("old", "later", "c"))
    two = T((1, 2, 3, 8), **POINT)
    tensors |= variables("q") | {"old": two, "later": two, "new": two, "next": two}
    tensors |= maps("z") | {
        "begin2": T(data=np.int32([0, 4, 0, 0])), "end2": T(data=np.int32([1, 6, 3, 8])),
        "end": T(data=np.int32([1, 4, 3, 8])),
    }
    cut = ("STRIDED_SLICE", ["all", "begin2", "end2", "step"], ["next"], (
        "StridedSliceOptions", {},
    ))
    operators = [
        handle("q"), *operators[:2], read("q", "later"), *operators[2:5], cut, *operators[5:],
        assign("q", "next"), conv("new", "z"),
    ]
    first_values(rng, (tensors, operators, "q", two.shape))
