"""The report of a network on a product core: what each layer costs, and what bounds it."""

from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import lru_cache

import numpy as np

from weft.commands import Job, JobFlag, Region, epilogue_flags
from weft.config import Config
from weft.cycles.model import CycleLimits, limits
from weft.geometry import memories
from weft.models.program import Estimate, MatrixProduct, Program
from weft.models.report.energy import Energy, energy, energy_text
from weft.models.report.interface import Ceilings, PageParts, Report
from weft.models.report.placement import left_out_json, placement_line, remedy_of
from weft.models.report.streams import LayerStreams, chunk_cycles, step_streams, transfers
from weft.timing import Latencies

__all__ = ["ProductCoreLayer", "ProductCoreReport", "ceilings", "product_core_report"]


@dataclass(frozen=True, kw_only=True)
class ProductCoreLayer:
    """One step of a network on a product core.

    Attributes
    ----------
    operators : tuple of str
    name : str
    position : tuple of int
        Places of the operators in the file, from 0.
    on_weft : bool
    reason : str
        Why the host computes the step, or a part of it; empty if the core computes all of it.
    field : str
        Field of the Config, with a value, that would change this; may be empty.
    extra_bytes : int
        Bytes on the result stream that this field would save.
    remedy : str
        What would bring the work of the host to a core, for people; may be empty.
    method : str
        How the operator becomes products (`weft.models.program.Step.method`).
    products : tuple of MatrixProduct
    macs : int
    weights : str
        How the weights reach the core (`weft.models.program.Step.weights`).
    jobs, cycles, active, starved, stalled : int
        Predicted, as in `weft.models.program.Estimate`.
    utilization : float
        ``macs / (cycles * peak)``, in 0..1.
    limits : CycleLimits or None
        Cycles with ideal parts; None on the host.
    core_bound : str
        What bounds the core: ``compute``, ``load``, ``drain``, ``latency``; empty on the host.
    bound : str
        ``wire`` if the serial port takes longer than the core; else `core_bound`.
    streams : LayerStreams
    core_ms, wire_ms : float or None
        None if the target has no clock, or no serial port.
    resident : int
        Bytes of the B buffer that the weights of the step occupy between inferences.
    maps : int
        Bytes of all feature maps that are needed at the end of the step: its inputs, its outputs,
        and outputs of earlier steps that later steps read. They are in the host's memory.
    energy : Energy
    measured : int or None
        Measured cycles; None if they were not measured.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    on_weft: bool
    reason: str
    field: str
    extra_bytes: int
    remedy: str
    method: str
    products: tuple[MatrixProduct, ...]
    macs: int
    weights: str
    jobs: int
    cycles: int
    active: int
    starved: int
    stalled: int
    utilization: float
    limits: CycleLimits | None
    core_bound: str
    bound: str
    streams: LayerStreams
    core_ms: float | None
    wire_ms: float | None
    resident: int
    maps: int
    energy: Energy
    measured: int | None = None

    @property
    def operator(self) -> str:
        """The operators in one word: ``CONV_2D+LOGISTIC``."""
        return "+".join(self.operators)

    @property
    def results(self) -> int:
        """Results of all products."""
        return sum(product.m * product.n * product.count for product in self.products)


@dataclass(frozen=True, kw_only=True)
class ProductCoreReport(Report):
    """A whole network on a product core.

    Attributes
    ----------
    source, mode : str
        As in `weft.models.program.Program`.
    baud : int or None
    left_out : dict or None
        ``channels`` and ``macs`` that are not computed; None if the program computes all.
    others
        As of `Report`.
    """

    name: str
    source: str
    mode: str
    placement: str
    target: str
    config: str
    config_hash: int
    clock: float | None
    baud: int | None
    ceilings: Ceilings
    layers: tuple[ProductCoreLayer, ...]
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] | None = None
    against: Report | None = None

    @property
    def on_weft(self) -> tuple[ProductCoreLayer, ...]:
        return tuple(layer for layer in self.layers if layer.on_weft)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def cycles(self) -> int:
        return sum(layer.cycles for layer in self.layers)

    @property
    def utilization(self) -> float:
        macs = sum(layer.macs for layer in self.on_weft)
        return macs / (self.cycles * self.ceilings.peak) if self.cycles else 0.0

    @property
    def streams(self) -> LayerStreams:
        return sum((layer.streams for layer in self.layers), LayerStreams())

    @property
    def core_ms(self) -> float | None:
        return None if self.clock is None else sum(layer.core_ms for layer in self.on_weft)

    @property
    def wire_ms(self) -> float | None:
        return None if self.baud is None else sum(layer.wire_ms for layer in self.on_weft)

    @property
    def energy(self) -> Energy:
        return sum((layer.energy for layer in self.layers), Energy())

    def with_measured(self, records) -> "ProductCoreReport":
        layers = zip(self.layers, records, strict=True)
        measured = tuple(replace(layer, measured=record.cycles) for layer, record in layers)
        return replace(self, layers=measured)

    def to_json(self) -> dict:
        data = asdict(replace(self, against=None))
        for layer, entry in zip(self.layers, data["layers"], strict=True):
            entry["energy"]["total"] = layer.energy.total
        data["totals"] = {
            "macs": self.macs, "cycles": self.cycles, "utilization": self.utilization,
            "streams": asdict(self.streams), "core_ms": self.core_ms, "wire_ms": self.wire_ms,
            "energy": {**asdict(self.energy), "total": self.energy.total},
        }
        data["against"] = self.against and self.against.to_json()
        return data

    def totals(self) -> dict[str, str]:
        moved = self.streams
        return super().totals() | {
            "bytes of commands": f"{moved.commands:,}", "bytes of results": f"{moved.results:,}",
            "bytes sent": f"{moved.sent:,}", "bytes received": f"{moved.received:,}",
            "energy (estimate)": energy_text(self.energy.total),
        }

    def show(self, console) -> None:
        from weft.models.report.product_core_views import show

        show(self, console)

    def pictures(self) -> dict[str, str]:
        from weft.models.report.product_core_views import pictures

        return pictures(self)

    def page_parts(self) -> PageParts:
        from weft.models.report.product_core_views import page_parts

        return page_parts(self)


def product_core_report(program: Program, against: Report | None = None) -> ProductCoreReport:
    """The report of a program, beside the one of another target."""
    config, target = program.target.array, program.target
    able = ceilings(config)
    cached_limits = lru_cache(lambda commands: limits(config, commands))
    maps = _live_maps(program)
    layers = tuple(
        _layer(program, step, able, cached_limits, size)
        for step, size in zip(program.steps, maps, strict=True)
    )
    return ProductCoreReport(
        name=program.name, source=program.source, mode=program.mode,
        placement=placement_line(program), target=target.name, config=config.name,
        config_hash=config.hash, clock=target.clock, baud=target.baud, ceilings=able,
        layers=layers, notes=program.notes,
        left_out=left_out_json(program), against=against,
    )


def ceilings(config: Config) -> Ceilings:
    """The peak rates of the parts of a product core."""
    latencies = Latencies.of(config)
    words = {region: m for region, m in memories(config).items() if region <= Region.B}
    a_bytes, b_bytes = (operand.words * operand.word_bytes for operand in words.values())
    narrow = (*epilogue_flags(config), JobFlag(0))[0]  # results; JobFlag(0) without an epilogue
    row = latencies.row_chunks * chunk_cycles(config, narrow)
    return Ceilings(config.peak, config.bytes_in, config.cols / row, a_bytes, b_bytes)


def _layer(program, step, able, cached_limits, maps):
    target, config = program.target, program.target.array
    estimate = step.estimate or Estimate(0, 0, 0, 0, 0, 0, 0)
    found, moved, used = None, LayerStreams(), Energy()
    core_seconds = wire_seconds = None
    core_bound = bound = ""
    if step.placement.on_weft:
        found = _limits(transfers(program, step), cached_limits)
        moved = step_streams(program, step)
        core_bound = bound = found.bound
        core_seconds = target.core_seconds(estimate.cycles)
        wire_seconds = target.wire_seconds(moved.sent, moved.received)
        if core_seconds is not None and (wire_seconds or 0) > core_seconds:
            bound = "wire"
        results = sum(product.m * product.n * product.count for product in step.products)
        used = energy(config, able, moved, step.macs, estimate.active, results)
    peak = estimate.cycles * able.peak
    return ProductCoreLayer(
        operators=step.operators, name=step.name, position=step.position,
        on_weft=step.placement.on_weft, reason=step.placement.reason, field=step.placement.field,
        extra_bytes=step.placement.extra_bytes, remedy=remedy_of(program, step),
        method=step.method, products=step.products, macs=step.macs, weights=step.weights,
        jobs=estimate.jobs, cycles=estimate.cycles,
        active=estimate.active, starved=estimate.starved, stalled=estimate.stalled,
        utilization=step.macs / peak if peak else 0.0, limits=found, core_bound=core_bound,
        bound=bound, streams=moved, core_ms=_ms(core_seconds), wire_ms=_ms(wire_seconds),
        resident=step.resident_bytes, maps=maps, energy=used,
    )


def _limits(transfers, cached_limits):
    """The limits of a step whose streams follow each other, each on an idle core."""
    total = np.zeros(len(fields(CycleLimits)), np.int64)
    for commands, times in transfers:
        untagged = (replace(c, tag=0) if isinstance(c, Job) else c for c in commands)
        total += times * np.array(astuple(cached_limits(tuple(untagged))))
    return CycleLimits(*total.tolist())


def _ms(seconds):
    return None if seconds is None else 1e3 * seconds


def _live_maps(program):
    """For each step, the bytes of all tensors that are needed when it ends: its own and later ones.
    """
    last = {}  # by tensor, the last step that reads it
    for n, step in enumerate(program.steps):
        last.update((tensor, n) for tensor in (*step.inputs, *step.outputs) if tensor >= 0)
    last.update((tensor, len(program.steps)) for tensor in program.results)
    live = {*program.inputs, *(state.before for state in program.states)}
    sizes = []
    for n, step in enumerate(program.steps):
        live |= set(step.outputs) - {-1}
        sizes.append(sum(_bytes(program.tensors[tensor]) for tensor in live))
        live = {tensor for tensor in live if last.get(tensor, -1) > n}
    return sizes


def _bytes(tensor):
    return int(np.prod(tensor.shape, dtype=np.int64)) * np.dtype(tensor.dtype).itemsize
