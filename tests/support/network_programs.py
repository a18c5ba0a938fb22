"""Programs made by hand: a small network with windows, groups, and operators on the host."""

import numpy as np

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.host.planner import Planner
from weft.models.exactness import Exactness
from weft.models.ir import Tensor
from weft.models.program import Estimate, MatrixProduct, Placement, Program, Step
from weft.models.target import NetworkTarget
from weft.models.work import HostWork
from weft.network_core.descriptors import ListJob, unpack_list

SMALL = Config(
    rows=4, cols=4, depth=4, lanes=2, bytes_in=4, bytes_out=4, a_words=512, b_words=512
)
TARGET = NetworkTarget("a-board", SMALL, 100, 1_000_000)
OTHER = NetworkTarget("other", Config(rows=2, cols=4, depth=8, lanes=4, a_words=512, b_words=512))


class PlannedWork:
    """The commands of some products, as the planner gives them."""

    early = -1

    def __init__(self, config, products):
        planner, flags = Planner(config), (*epilogue_flags(config), JobFlag(0))[0]
        self._commands = [
            command
            for product in products
            for _ in range(product.count)
            for step in planner.plan(product.m, product.n, product.k, flags=flags)
            for command in step.commands
        ]

    def commands(self):
        return self._commands


def core_step(target, operator, position, product, macs, **fields):
    """A step on the core, of one kind of product."""
    work = PlannedWork(target.array, [product])
    found = predict(target.array, work.commands())
    estimate = Estimate(
        found.cycles, found.active, found.starved, found.stalled, len(found.ends),
        found.words_in * target.array.bytes_in, found.words_out * target.array.bytes_out,
    )
    return Step(
        operators=(operator,), name=f"layer{position}", position=(position,), inputs=(position,),
        outputs=(position + 1,), macs=macs, products=(product,), estimate=estimate,
        weights="streamed", work=work,
        **{"placement": Placement(True), "method": "windows", **fields},
    )


def host_step(operator, position, reason, field=""):
    """A step on the host."""
    return Step(
        operators=(operator,), name=operator.lower(), position=(position,), inputs=(position,),
        outputs=(position + 1,), placement=Placement(False, reason, field),
        work=HostWork("reshape", {}),
    )


def jobs_of(program):
    """The jobs in the lists of a network core's program."""
    return [
        entry for segment in program.segments for entry in unpack_list(segment.run)
        if isinstance(entry, ListJob)
    ]


def random_inputs(program, count, seed=1):
    """Random int8 inputs of a network, for ``count`` inferences."""
    shape = program.tensors[program.inputs[0]].shape
    return np.random.default_rng(seed).integers(-128, 128, (count, *shape[1:]), np.int8)


def check_network(program, runner):
    """Run two inferences; golden runner and cycle model expect the same results and cycles."""
    x = random_inputs(program, 2)
    session = program.open(runner, timeout=600)
    y = session(x)
    assert session.cycles == program.cycles
    with program.open("golden") as golden:
        assert np.array_equal(y, golden(x))


def make_program(target=TARGET, mode="tflite"):
    """A convolution, a depthwise one, a pool, a fully connected layer and a softmax."""
    steps = (
        core_step(target, "CONV_2D", 0, MatrixProduct(20, 18, 8), 20 * 18 * 8),
        core_step(
            target, "DEPTHWISE_CONV_2D", 1, MatrixProduct(20, 36, 4, 2), 20 * 9 * 8,
            method="block-diagonal",
            placement=Placement(True, "no table for GELU", "activation=table", 160),
        ),
        host_step("AVERAGE_POOL_2D", 2, "no product"),
        core_step(target, "FULLY_CONNECTED", 3, MatrixProduct(1, 8, 10), 80, method="matrix"),
        host_step("SOFTMAX", 4, "softmax needs a reduction"),
    )
    shapes = (1, 6, 7, 2), (1, 5, 4, 8), (1, 5, 4, 8), (1, 8), (1, 10), (1, 10)
    return Program(
        name="tiny", source="tflite", mode=mode, target=target,
        tensors=tuple(Tensor("", shape, np.dtype(np.int8)) for shape in shapes),
        inputs=(0,), outputs=(5,),
        operators=tuple(step.operators[0] for step in steps), steps=steps,
        exactness=Exactness("equal to a runtime", (0.0,), (0.0,)), notes=("the batch is 1",),
    )
