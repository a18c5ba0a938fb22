"""Makes the report of a program from its steps and their commands."""

from dataclasses import astuple, fields, replace
from functools import lru_cache

import numpy as np

from weft.commands import Job
from weft.cycles.limits import CycleLimits, limits
from weft.models.network_core.program import NetworkCoreProgram
from weft.models.program import Estimate, Program
from weft.models.report.energy import energy
from weft.models.report.figures import Energy, LayerReport, LayerStreams, NetworkReport
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.placement import left_out_json, placement_line, remedy_of
from weft.models.report.streams import ceilings, step_streams, transfers

__all__ = ["report"]


def report(
    program: Program | NetworkCoreProgram, against: Program | NetworkCoreProgram | None = None
) -> NetworkReport | NetworkCoreReport:
    """The report of a program.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
        A NetworkCoreProgram gives a `NetworkCoreReport`.
    against : Program or NetworkCoreProgram, optional
        The same network compiled for another target, to compare with.
    """
    if isinstance(program, NetworkCoreProgram):
        return NetworkCoreReport(program, None if against is None else report(against))
    config, target = program.target.array, program.target
    able = ceilings(config)
    cached_limits = lru_cache(lambda commands: limits(config, commands))
    maps = _live_maps(program)
    layers = tuple(
        _layer(program, step, able, cached_limits, size)
        for step, size in zip(program.steps, maps, strict=True)
    )
    return NetworkReport(
        name=program.name, source=program.source, mode=program.mode,
        placement=placement_line(program), target=target.name, config=config.name,
        config_hash=config.hash, clock=target.clock, baud=target.baud, ceilings=able,
        layers=layers, notes=program.notes,
        left_out=left_out_json(program), against=None if against is None else report(against),
    )


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
    return LayerReport(
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
