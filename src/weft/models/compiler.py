"""Compiles a graph for a product core: places nodes, plans products, predicts their cost."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.cycles import predict
from weft.geometry import operands
from weft.models.dead_channels import leave_out_channels, notes_of
from weft.models.errors import ModelError
from weft.models.exactness import exactness_of, in_mode
from weft.models.ir import Gemm, Graph, Host, Node, Recurrence
from weft.models.lowering import candidates
from weft.models.placement import Decision, commands_of, decide, mode_of, schedule
from weft.models.products import core_flags, core_work, host_product
from weft.models.program import Estimate, MatrixProduct, Placement, Program, Step
from weft.models.progress import Progress, Watch
from weft.models.target import target_of
from weft.models.work import CoreWork, HostProduct, HostWork, RecurrentWork, core_works

__all__ = ["FusedNode", "compile_graph", "fuse_tables"]


@dataclass(frozen=True, eq=False)
class FusedNode:
    """A node, and the table operator that is computed with it.

    Attributes
    ----------
    node : Node
    table : Host or None
    refusal : str
        If the node is a table operator after a product: why it is not fused into that product.
        Empty otherwise.
    field : str
        Setting of the Config with which it would be fused; empty if no setting helps.
    """

    node: Node
    table: Host | None = None
    refusal: str = ""
    field: str = ""

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators of the file."""
        return (self.node.operator, *([self.table.operator] if self.table else []))

    @property
    def position(self) -> tuple[int, ...]:
        """Places of the operators in the file."""
        return (*self.node.position, *(self.table.position if self.table else ()))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Output tensors."""
        return (self.table or self.node).outputs

    @property
    def values(self) -> np.ndarray | None:
        """The table, [256], or None."""
        return self.table.attributes["table"] if self.table else None


def fuse_tables(graph: Graph, fusable: Sequence[bool], has_table: bool) -> list[FusedNode]:
    """Return the nodes of a graph; a table operator becomes a part of the product before it.

    Parameters
    ----------
    graph : Graph
    fusable : sequence of bool
        For each node: True if the core computes it and requantizes its results.
    has_table : bool
        Whether the core has an activation table.
    """
    readers = Counter(number for node in graph.nodes for number in node.inputs)
    readers.update(graph.results)
    products = {
        node.outputs[0]: node for node, fuses in zip(graph.nodes, fusable, strict=True)
        if fuses and isinstance(node, Gemm)
    }
    fused: dict[int, Host] = {}
    refusals: dict[int, tuple[str, str]] = {}
    for node in graph.nodes:
        if not isinstance(node, Host) or node.kernel != "table" or node.inputs[0] not in products:
            continue
        number = node.inputs[0]
        if readers[number] > 1:
            refusals[id(node)] = "the product before it has other readers", ""
        elif not has_table:
            refusals[id(node)] = "the core has no activation table", "activation=table"
        else:
            fused[number] = node
    hidden = {id(node) for node in fused.values()}
    return [
        FusedNode(node, fused.get(node.outputs[0]), *refusals.get(id(node), ()))
        for node in graph.nodes if id(node) not in hidden
    ]


_COMPARED = 4  # products of a step that are predicted to compare ways to compute it


def compile_graph(
    graph: Graph, target, *, fuse: bool = True, watch: Watch | None = None
) -> Program:
    """Compile a network.

    Parameters
    ----------
    graph : Graph
    target : NetworkTarget, Config, str or path
        As for `weft.models.target.target_of`.
    fuse : bool
        Fuse table operators into the products before them, and leave out channels that no result
        depends on. Then a session cannot give the outputs of such operators.
    watch : callable, optional
        Called with the part that is done, from 0 to 1.

    Raises
    ------
    ModelError
        If the graph breaks a rule, or the target is not known.
    weft.config.ConfigError
        If a TOML file of the target is not valid.
    """
    target = target_of(target)
    config = target.array
    mode = mode_of(graph.source, config)
    graph = in_mode(graph, mode)
    exactness, left_out = exactness_of(graph, mode, config), None
    if fuse:
        graph, left_out = leave_out_channels(graph, mode)
    decisions = [
        decide(node, graph.tensors, config, mode) if isinstance(node, Gemm) else None
        for node in graph.nodes
    ]
    by_node = dict(zip(map(id, graph.nodes), decisions, strict=True))
    fusable = [fuse and decision is not None and decision.requantizes for decision in decisions]
    nodes = fuse_tables(graph, fusable, config.activation == "table")
    compiler = _Compiler(graph, config, mode)
    steps = [compiler.step(fused, by_node[id(fused.node)]) for fused in nodes]
    steps = _scheduled(steps, config, Progress(watch))
    read = {*graph.results, *(number for step in steps for number in step.operands)}
    tensors = tuple(
        tensor if number in read else dataclasses.replace(tensor, data=None)
        for number, tensor in enumerate(graph.tensors)
    )
    return Program(
        name=graph.name, source=graph.source, mode=mode, target=target, tensors=tensors,
        inputs=graph.inputs, outputs=graph.outputs, operators=graph.operators,
        steps=tuple(steps), notes=(*notes_of(graph, left_out), *_notes(graph, config)),
        states=graph.states, exactness=exactness, left_out=left_out,
    )


def _notes(graph, config):
    """What a user can do about a float network on a core for integers."""
    if graph.source != "onnx" or config.data_type.acc.name != "int32":
        return
    from weft.models.onnx.nodes import is_quantized

    quantized = any(is_quantized(kind) for kind in graph.operators)
    floats = any(
        isinstance(node, Gemm) and graph.tensors[node.x].dtype == np.float32 for node in graph.nodes
    )
    if floats and not quantized:
        yield (
            "its products are of float32, which a core for integers does not compute; weft quantize"
            " makes an int8 network of the file"
        )


class _Compiler:
    """Makes the steps of a graph, with streamed weights."""

    def __init__(self, graph, config, mode):
        self._graph = graph
        self._config = config
        self._mode = mode

    def step(self, fused: FusedNode, decision: Decision | None) -> Step:
        """Return the step of a node, and the table operator fused with it."""
        node = fused.node
        common = dict(
            operators=fused.operators, name=node.name, position=fused.position,
            inputs=node.inputs, outputs=fused.outputs,
        )
        if not isinstance(node, Gemm | Recurrence):
            reason = fused.refusal or node.reason
            return Step(
                **common, placement=Placement(False, reason, fused.field), macs=node.macs,
                work=HostWork(node.kernel, node.attributes),
            )
        try:
            if isinstance(node, Recurrence):
                return self._recurrence(common, node)
            return self._product(common, fused, decision)
        except ValueError as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(
                f"{self._graph.name}: operator {node.position[0]} ({node.operator} {node.name}):"
                f" {error}"
            ) from error

    def _product(self, common, fused, decision):
        gemm, tensors, config = fused.node, self._graph.tensors, self._config
        x_shape = tensors[gemm.x].shape
        b_shape = None if gemm.b is None else tensors[gemm.b].shape
        ways = candidates(gemm, x_shape, b_shape, config.cols)
        placement = Placement(decision.on_weft, decision.reason, decision.field)
        common |= dict(
            placement=placement, macs=ways[0].macs(x_shape), left_out=gemm.left_out,
        )
        if not decision.on_weft:
            return Step(**common, work=host_product(gemm, tensors, ways[0], self._mode))
        flags = core_flags(gemm, decision, config, table=fused.table is not None)
        copies = 2 if tensors[gemm.x].dtype == np.int16 else 1
        rows = ways[0]
        if len(ways) > 1:
            rows = min(ways, key=lambda way: self._cycles(way, x_shape, copies, flags))
        work = core_work(gemm, tensors, rows, config, self._mode, decision, fused.values)
        count, m, k, n = work.shape()
        return Step(
            **common, method=rows.method, products=(MatrixProduct(m, k, n, count),), work=work,
        )

    def _recurrence(self, common, node):
        tensors, config, mode = self._graph.tensors, self._config, self._mode
        decisions = [decide(gemm, tensors, config, mode) for gemm in node.products]
        on_weft = all(decision.on_weft for decision in decisions)
        works: list[CoreWork | HostProduct] = []
        products, macs = [], 0
        for gemm, decision in zip(node.products, decisions, strict=True):
            shape = tensors[gemm.x].shape
            [rows] = candidates(gemm, shape, None, config.cols)
            macs += rows.macs(shape) * node.steps
            if on_weft:
                works.append(core_work(gemm, tensors, rows, config, mode, decision, None))
                _, m, k, n = works[-1].shape()
                products.append(MatrixProduct(m, k, n, node.steps))
            else:
                works.append(host_product(gemm, tensors, rows, mode))
        reasons = [node.reason, *(decision.reason for decision in decisions)]
        reason = "; ".join(text for text in dict.fromkeys(reasons) if text)
        field = next((decision.field for decision in decisions if decision.field), "")
        return Step(
            **common, placement=Placement(on_weft, reason, field), macs=macs,
            method="matrix" if on_weft else "", products=tuple(products),
            work=RecurrentWork(
                kernel=node.kernel, attributes=node.attributes, products=tuple(works),
                steps=node.steps, mode=mode,
            ),
        )

    def _cycles(self, rows, x_shape, copies, flags):
        """Return the approximate cycles of a way to compute a product."""
        shape = rows.count, rows.m(x_shape) * copies, rows.k, rows.n
        return _cycles_of(self._config, shape, flags)


_COMPARED = 4  # products of a step that are predicted to compare ways to compute it


@functools.lru_cache(maxsize=4096)
def _cycles_of(config, shape, flags):
    count, *size = shape
    some = min(count, _COMPARED)
    return predict(config, commands_of(config, (some, *size), flags)).cycles * count / some


def _scheduled(steps, config, progress):
    """Return the steps with pages for weights, and with their predicted cost."""
    found = [(n, work) for n, step in enumerate(steps) for work in core_works(step.work)]
    works, kinds = schedule(
        [work for _, work in found], config,
        [getattr(steps[n].work, "steps", 0) for n, _ in found],
    )
    works = _with_tables(works)
    placed: dict[int, list] = {}
    for (n, _), work, kind in zip(found, works, kinds, strict=True):
        if work.early >= 0:
            work = dataclasses.replace(work, early=found[work.early][0])
        placed.setdefault(n, []).append((work, kind))
    placed_steps = [_placed(step, placed.get(n, [])) for n, step in enumerate(steps)]
    estimated = []
    progress.begin(len(steps))
    for n, step in enumerate(placed_steps):
        estimated.append(_estimated(step, placed_steps, config))
        progress(n + 1)
    return estimated


def _placed(step, placed):
    """Return a step with its products on the core as they are placed: (CoreWork, kind)."""
    if not placed:
        return step
    works, kinds = zip(*placed, strict=True)
    if isinstance(step.work, CoreWork):
        return dataclasses.replace(step, work=works[0], weights=kinds[0])
    resident = all(kind == "resident" for kind in kinds)
    return dataclasses.replace(
        step, work=dataclasses.replace(step.work, products=works),
        weights="resident" if resident else "streamed",
    )


def _with_tables(works):
    """Return the works; a work loads its table if the core has another one before it."""
    tables = [work.table for work in works if work.table is not None]
    last = tables[-1] if tables else None  # of the inference before
    result = []
    for work in works:
        if work.table is not None:
            result.append(
                dataclasses.replace(work, loads_table=not np.array_equal(work.table, last))
            )
            last = work.table
        else:
            result.append(work)
    return result


def _estimated(step, steps, config):
    works = core_works(step.work)
    if not works:
        return step
    b = operands(config)[1]
    estimates, resident = [], 0
    for work in works:
        after = steps[work.early].work.weight_loads() if work.early >= 0 else []
        estimates.append(_estimate(work.stream(after=after), config))
        if work.b_pages is not None and step.weights != "early":
            count, _, k, n = work.shape()
            resident += count * b.panels(n) * b.panel_pages(k) * b.page * b.word_bytes
    estimate, placement = sum(estimates[1:], estimates[0]), step.placement
    if isinstance(step.work, RecurrentWork):
        estimate *= step.work.steps
    elif placement.field and step.work.results == np.int32:
        placement = dataclasses.replace(placement, extra_bytes=estimate.bytes_out * 3 // 4)
    return dataclasses.replace(
        step, estimate=estimate, placement=placement, resident_bytes=resident
    )


def _estimate(stream, config):
    prediction = predict(config, stream.commands)
    return Estimate(
        cycles=prediction.cycles, active=prediction.active, starved=prediction.starved,
        stalled=prediction.stalled, jobs=stream.jobs, bytes_in=stream.bytes_in,
        bytes_out=stream.bytes_out,
    )
