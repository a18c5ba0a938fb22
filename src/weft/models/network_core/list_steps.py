"""Steps between lists: operators of the host, products in own lists; the record of a step."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.frames import MAX_DATA, WRITE_FIELDS
from weft.host.list_plan import ProductSpace, block_sizes, whole_space
from weft.host.list_products import ListProducts
from weft.models.arithmetic import core_parts
from weft.models.errors import ModelError
from weft.models.execution import host_run
from weft.models.ir import Gemm, Graph, Node, Recurrence, Tensor
from weft.models.lowering import candidates
from weft.models.placement import decide
from weft.models.products import host_product
from weft.models.program import Estimate, MatrixProduct, Placement, Step
from weft.models.work import HostProduct, HostWork, ListProduct, RecurrentWork, list_products
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListError, ListReport

__all__ = [
    "FRAME", "NetworkCoreRecord", "core_sums", "estimated", "frames", "host_step", "products_area",
    "shape_of",
]

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreRename, NetworkCoreStep
    from weft.models.program import Step



@dataclass(frozen=True)
class NetworkCoreRecord:
    """The measured cost of a step.

    Attributes
    ----------
    step : NetworkCoreStep, NetworkCoreRename or Step
        A layer on the core, an operator without work, or an operator of the host.
    cycles : int or None
        Cycles of a layer in one inference: from the end of the job before the layer to the layer's
        last store. Cycles of an operator of the host whose products run on the core: those of the
        lists of its products, for all inferences that run at once. None for other operators of the
        host, and if the runner does not count cycles.
    seconds : float
        Time of the host; 0 for a layer.
    """

    step: "NetworkCoreStep | NetworkCoreRename | Step"
    cycles: int | None
    seconds: float

    def __add__(self, other: "NetworkCoreRecord") -> "NetworkCoreRecord":
        """Return the record with the time of further inferences."""
        return NetworkCoreRecord(self.step, self.cycles, self.seconds + other.seconds)


FRAME = 12  # bytes of a frame without its payload: SYNC, type, sequence, length, two checksums
_SUM = 4  # bytes


def core_sums(products: ListProducts) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return ``multiply(a, b)`` of `weft.models.execution.HostProductRun` that uses the core."""
    def sums(a, b):
        columns, parts = np.ascontiguousarray(b.T), core_parts(a)
        raw = products.sums(np.concatenate(parts), columns).astype(np.int64)
        if len(parts) == 1:
            return raw
        high, low = np.split(raw, 2)  # of int16, where the low byte is less 128
        return 256 * high + low + 128 * columns.sum(1, dtype=np.int64)

    return lambda a, b: np.stack([sums(*pair) for pair in zip(a, b, strict=True)])


def shape_of(
    work: ListProduct, tensors: Sequence[Tensor], inferences: int
) -> tuple[int, int, int]:
    """Return M, K and N of each product of a work."""
    x, rows = tensors[work.x], work.rows
    copies = 2 if x.dtype == np.int16 else 1
    return rows.m(x.shape) * copies * (1 if work.b is not None else inferences), rows.k, rows.n


def products_area(
    steps: Sequence[Step], tensors: Sequence[Tensor], config: NetworkCoreConfig, batch: int,
    free: ProductSpace
) -> ProductSpace:
    """Return the part of the ``free`` space that the products of ``steps`` use.

    Raises ValueError if it is too small.
    """
    wanted = [0, 0]
    shapes = [shape_of(work, tensors, batch) for step in steps for work in list_products(step.work)]
    shapes.append((1, 1, config.array.cols))  # which `ListProducts` needs in any case
    for shape in shapes:
        wanted = [*map(max, wanted, whole_space(config, *shape, _SUM))]
    space = ProductSpace(
        free.first, max(0, min(wanted[0], free.vectors)),
        free.program_first, max(0, min(wanted[1], free.program_vectors)),
    )
    for shape in shapes:
        block_sizes(config, *shape, _SUM, space)
    return space


def estimated(
    step: Step, tensors: Sequence[Tensor], config: NetworkCoreConfig, batch: int,
    space: ProductSpace
) -> Step:
    """Return a step with the cost of its lists, for ``batch`` inferences.

    The step runs as in a session, with random operands, on a core that only counts.
    """
    core = _Counting(config)
    products = ListProducts(core, space=space)
    host_run(step.work, core_sums(products))(_operands(step, tensors, batch), batch, False)
    counters = products.counters
    cycles = counters.cycles()
    return dataclasses.replace(step, estimate=Estimate(
        cycles=cycles, active=counters.steps, starved=cycles - counters.steps, stalled=0,
        jobs=counters.lists, bytes_in=core.sent, bytes_out=core.received,
    ))


def _operands(step, tensors, batch):
    rng, values = np.random.default_rng(1), []
    for number in step.operands:
        tensor = tensors[number] if number >= 0 else None
        if tensor is None:
            values.append(None)
        elif tensor.data is not None:
            values.append(np.broadcast_to(tensor.data, (batch, *tensor.shape)))
        elif tensor.dtype.kind in "iu":
            limits = np.iinfo(tensor.dtype)
            values.append(rng.integers(
                limits.min, limits.max, (batch, *tensor.shape), tensor.dtype, endpoint=True
            ))
        else:
            values.append(rng.random((batch, *tensor.shape)).astype(tensor.dtype))
    return values


def frames(size: int, row: int, room: int) -> int:
    """Return the number of WRITE frames for ``size`` bytes of data, in whole rows if they fit.

    A frame has ``room`` for data, in bytes.
    """
    each = room // row * row if row <= room else room
    return -(-size // each)


class _Counting:
    """A runner of lists that counts the bytes on a link, and computes nothing.

    A program memory is not behind the link: host and core share it.

    Attributes
    ----------
    sent, received : int
        Bytes to the core and from it, with frames.
    uses : int
        0: it has no other users.
    """

    uses = 0

    def __init__(self, config):
        self.config = config
        self.sent = self.received = 0

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0):
        count = frames(len(data), run * pixels or 1, self.config.write_bytes)
        self.sent += len(data) + count * (FRAME + WRITE_FIELDS)
        self.received += count * FRAME

    def write_program(self, address, data):
        pass

    def read(self, address, count):
        self.received += count
        if count > MAX_DATA:  # else DONE has the bytes
            requests = -(-count // MAX_DATA)
            self.sent += requests * (FRAME + 8)
            self.received += requests * FRAME
        return bytes(count)

    def run(self, list_address, log_address, *, timeout):
        self.sent += FRAME + 8  # START
        self.received += 2 * FRAME + 8  # ACK and DONE
        return ListReport(ListError.NONE, 1)


def host_step(
    graph: Graph, node: Node, mode: str, reason: str, before: Node | None, config: NetworkCoreConfig
    | None
) -> Step:
    """Return the step of a node.

    Parameters
    ----------
    mode : str
        Rounding mode.
    reason : str
        Why it is no layer.
    before : Node or None
        An operator that a convolution computes, too: PAD in its window.
    config : NetworkCoreConfig or None
        The core, for the products; None: the host computes them.

    Raises
    ------
    ModelError
        If the operator is not valid.
    """
    nodes = [node] if before is None else [before, node]
    try:
        macs, work = _work(graph, node, mode, config)
    except ValueError as error:
        raise ModelError(
            f"{graph.name}: operator {node.position[0]} ({node.operator} {node.name}): {error}"
        ) from error
    found = list_products(work)
    shapes = ((*shape_of(part, graph.tensors, 1), part.rows.count) for part in found)
    times = node.steps if isinstance(node, Recurrence) else 1
    return Step(
        operators=tuple(n.operator for n in nodes), name=node.name,
        position=tuple(place for n in nodes for place in n.position), inputs=node.inputs,
        outputs=node.outputs, macs=macs, placement=Placement(bool(found), reason), work=work,
        method=found[0].rows.method if found else "",
        products=tuple(MatrixProduct(m, k, n, count * times) for m, k, n, count in shapes),
        left_out=node.left_out if isinstance(node, Gemm) else 0,
    )


def _work(graph, node, mode, config) -> tuple[int, HostProduct | HostWork | RecurrentWork]:
    """Return the MAC and the work of a node."""
    if isinstance(node, Gemm):
        return _product(graph, node, mode, _core_for([node], graph, mode, config))
    if isinstance(node, Recurrence):
        config = _core_for(node.products, graph, mode, config)
        products = [_product(graph, gemm, mode, config) for gemm in node.products]
        return sum(macs for macs, _ in products) * node.steps, RecurrentWork(
            kernel=node.kernel, attributes=node.attributes, steps=node.steps, mode=mode,
            products=tuple(work for _, work in products),
        )
    return node.macs, HostWork(node.kernel, node.attributes)


def _core_for(gemms, graph, mode, config):
    """Return the core, if it can compute all these products; else None."""
    able = config is not None and not config.resident and all(
        decide(gemm, graph.tensors, config.array, mode).on_weft for gemm in gemms
    )
    return config if able else None


def _product(graph, gemm, mode, config):
    x = graph.tensors[gemm.x].shape
    b = None if gemm.b is None else graph.tensors[gemm.b].shape
    ways = candidates(gemm, x, b, 1 if config is None else config.array.cols)
    rows = min(ways, key=lambda way: way.count) if config is not None else ways[0]
    kind = HostProduct if config is None else ListProduct
    return ways[0].macs(x), host_product(gemm, graph.tensors, rows, mode, kind)
