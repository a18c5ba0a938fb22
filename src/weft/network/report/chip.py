"""The report of a network on a core for networks: places, cycles, memory, bytes on the link."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.frames import MAX_WRITE, WRITE_FIELDS
from weft.network.chip.places import input_writes
from weft.network.chip.program import ChipProgram, memory_bytes
from weft.network.report.placement import operators_text, oracle_text, reason_lines

__all__ = ["ChipReport", "chip_placement_line", "chip_reasons", "link_bytes"]

_FRAME = 12  # bytes of a frame without its payload: SYNC, type, sequence, length, two checksums
_START = 8  # bytes of payload
_DONE = 8  # bytes of payload before the result


def chip_placement_line(program: ChipProgram) -> str:
    """Return one line for people, as `weft.network.report.placement.placement_line`."""
    on_core = {n for step in _on_core(program) for n in step.position}
    text = operators_text(program, on_core, sum(step.macs for step in program.layers))
    lists = len(program.segments)
    where = {0: "", 1: ", whole network on the core"}.get(lists, f", {lists} lists on the core")
    return (
        f"{program.name}: {text}; {oracle_text(program)}; {program.target.name}{where}:"
        f" {_cost(program)}"
    )


def _on_core(program):
    """The layers, and the operators without work."""
    renamed = (step for segment in program.segments for step in segment.renamed)
    return (*program.layers, *renamed)


def _cost(program):
    if not program.segments:
        return "the core is not used"
    cycles = program.cycles // program.batch
    core = program.target.core_seconds(cycles)
    cost = f"{cycles:,} cycles" if core is None else f"{1e3 * core:,.2f} ms core"
    wire = program.target.wire_seconds(*link_bytes(program))
    return cost if wire is None else f"{cost}, {1e3 * wire:,.1f} ms wire"


def chip_reasons(program: ChipProgram) -> list[str]:
    """Return a line for each operator of the host with a reason that a user should know.

    They have products, or run in another runtime, or lists come before and after them.
    """
    between = {step for segment in program.segments[1:] for step in segment.before}
    return reason_lines(
        ("+".join(step.operators), False, step.placement.reason, "", 0)
        for step in program.host
        if step.macs or step in between or getattr(step.work, "kernel", "").endswith(".model")
    )


def link_bytes(program: ChipProgram) -> tuple[int, int]:
    """Return the bytes to the core and from it for one inference: frames with their headers.

    The results that DONE does not carry are read with frames of their own.
    """
    sizes = [_list_bytes(program, segment) for segment in program.segments]
    return sum(sent for sent, _ in sizes), sum(received for _, received in sizes)


def _list_bytes(program, segment):
    """Return the bytes of one list."""
    sent = _FRAME + _START
    received = _FRAME + _DONE + segment.result_bytes
    for entry in segment.written:
        tensor = program.tensors[entry.form.tensor]
        zeros = np.zeros(tensor.shape, tensor.dtype)
        for write in input_writes(entry, zeros, tensor.dtype, program.chip, 0):
            row = write.get("run", 0) * write.get("pixels", 0)
            sent += _frames(len(write["data"]), row or 1)
    if not segment.result_bytes:
        for result in segment.results:
            size = result.place.pitches.vectors * program.chip.core.depth
            count = -(-size // 1024)
            sent, received = sent + count * (_FRAME + 8), received + count * _FRAME + size
    return sent, received


def _frames(size, row):
    """Return the bytes of WRITE frames with ``size`` bytes of data, in whole rows if they fit."""
    room = MAX_WRITE - WRITE_FIELDS
    each = room // row * row if row <= room else room
    return size + -(-size // each) * (_FRAME + WRITE_FIELDS)


@dataclass(frozen=True)
class ChipReport:
    """The report of a program; ``str(report)`` is its text.

    Attributes
    ----------
    program : ChipProgram
    """

    program: ChipProgram

    def to_json(self) -> dict[str, Any]:
        """Return all facts as JSON values."""
        program = self.program
        core = program.chip.core
        sent, received = link_bytes(program)
        cycles = program.cycles // program.batch
        return {
            "name": program.name, "source": program.source, "mode": program.mode,
            "placement": chip_placement_line(program), "target": program.target.name,
            "config": core.name, "chip_hash": program.chip.hash, "clock": program.target.clock,
            "batch": program.batch, "cycles": cycles,
            "utilization": _share(sum(step.macs for step in program.layers), cycles * core.peak),
            "memory": program.chip.memory_bytes, "areas": dict(program.areas),
            "used": memory_bytes(program.areas), "b_words": program.chip.b_words,
            "link": {"sent": sent, "received": received},
            "lists": [_list(program, segment) for segment in program.segments],
            "layers": [_layer(step, core) for step in program.layers],
            "host": [
                {"operator": "+".join(step.operators), "name": step.name,
                 "position": step.position, "reason": step.placement.reason}
                for step in program.host
            ],
            "notes": list(program.notes),
        }

    def __str__(self):
        return "\n".join(self.lines())

    def lines(self) -> Iterable[str]:
        """Yield the lines of the text."""
        facts = self.to_json()
        yield facts["placement"]
        yield (
            f"{'position':>8}  {'operator':<28} {'MAC':>12} {'output':>14} {'panels':>7}"
            f" {'rows':>5} {'jobs':>5} {'B words':>8} {'cycles':>10} {'use':>6}"
        )
        for layer in facts["layers"]:
            size = "x".join(map(str, layer["output"]))
            yield (
                f"{min(layer['position']):>8}  {'+'.join(layer['operators']):<28}"
                f" {layer['macs']:>12,} {size:>14} {layer['panels']:>7,} {layer['panel_rows']:>5}"
                f" {layer['jobs']:>5} {layer['words']:>8,} {layer['cycles']:>10,}"
                f" {layer['utilization']:>6.1%}"
            )
        areas = ", ".join(f"{name} {size:,}" for name, size in facts["areas"].items())
        yield (
            f"memory: {facts['used']:,} of {facts['memory']:,} bytes ({areas}; setup and maps share"
            " their place)"
        )
        words = sum(layer["words"] for layer in facts["layers"])
        kept = "they stay there" if not facts["areas"]["weights"] else "loaded in each inference"
        yield f"weights: {words:,} words of B, which has {facts['b_words']:,}: {kept}"
        link = facts["link"]
        yield f"link: {link['sent']:,} bytes to the core, {link['received']:,} from it"
        yield from chip_reasons(self.program)
        yield from self.program.notes


def _share(part, whole):
    return part / whole if whole else 0.0


def _list(program, segment):
    sent, received = _list_bytes(program, segment)
    return {
        "cycles": segment.cycles // program.batch, "sent": sent, "received": received,
        "positions": [step.position for step in segment.steps],
    }


def _layer(step, core):
    place = step.place
    return {
        "operators": step.operators, "name": step.name, "position": step.position,
        "macs": step.macs, "output": (place.height, place.width, place.channels),
        "map_bytes": place.pitches.vectors * core.depth, "panels": step.panels,
        "panel_rows": step.panel_rows, "jobs": step.jobs, "words": step.words,
        "cycles": step.cycles, "utilization": _share(step.macs, step.cycles * core.peak),
    }
