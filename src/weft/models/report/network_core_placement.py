"""The placement line of a network core, and the bytes on its link."""

import numpy as np

from weft.frames import WRITE_FIELDS
from weft.models.network_core.list_steps import FRAME, frames
from weft.models.network_core.places import input_writes
from weft.models.network_core.program import NetworkCoreProgram, NetworkCoreSegment
from weft.models.report.placement import (
    operators_text,
    reason_lines,
    remedy_of,
    time_text,
)

__all__ = [
    "link_bytes", "link_seconds", "list_bytes", "network_core_placement_line",
    "network_core_reasons",
]

_START = 8  # bytes of payload
_DONE = 8  # bytes of payload before the result


def network_core_placement_line(program: NetworkCoreProgram) -> str:
    """Return one line for people, as `weft.models.report.placement.placement_line`."""
    on_core = {n for step in _on_core(program) for n in step.position}
    text = operators_text(program, on_core, (*program.layers, *program.products))
    where = {0: "", 1: ", one list on the core"}.get(
        len(program.segments), f", {len(program.segments)} lists on the core"
    )
    if len(program.segments) == 1 and not program.host:
        where = ", whole network on the core"
    if program.products:
        where = where.replace(" on the core", " and single products on the core")
    return (
        f"{program.name}: {text}; {program.exactness.claim}; {program.target.name}{where}:"
        f" {_cost(program)}"
    )


def _on_core(program):
    """The layers, the operators without work, and those with products on the core."""
    renamed = (step for segment in program.segments for step in segment.renamed)
    return (*program.layers, *renamed, *program.products)


def _cost(program):
    if not program.segments:
        return "the core is not used"
    cycles = program.cycles // program.batch
    core = program.target.core_seconds(cycles)
    cost = f"{cycles:,} cycles" if core is None else f"{time_text(1e3 * core)} core"
    wire = link_seconds(program)
    return cost if wire is None else f"{cost}, {time_text(1e3 * wire)} wire"


def network_core_reasons(program: NetworkCoreProgram) -> list[str]:
    """Return a line for each operator of the host with a reason that a user should know.

    They have products, or run in another runtime, or lists come before and after them.
    """
    between = {step for segment in program.segments[1:] for step in segment.before}
    return reason_lines(
        ("+".join(step.operators), step.placement.on_weft, step.placement.reason,
         remedy_of(program, step))
        for step in program.host
        if step.macs or step in between or getattr(step.work, "kernel", "").endswith(".model")
    )


def link_bytes(program: NetworkCoreProgram) -> tuple[int, int]:
    """Return the bytes to the core and from it for one inference: frames with their headers.

    The core acknowledges each WRITE and the START. The results that DONE does not carry are read
    with frames of their own. Products between the lists are predicted for random operands: rows
    that are equal to those before are not sent again.
    """
    sizes = [list_bytes(program, segment) for segment in program.segments]
    sizes += [
        (step.estimate.bytes_in // program.batch, step.estimate.bytes_out // program.batch)
        for step in program.products if step.estimate
    ]
    return sum(sent for sent, _ in sizes), sum(received for _, received in sizes)


def link_seconds(program: NetworkCoreProgram) -> float | None:
    """Return the time of `link_bytes`; None without a serial port.

    The result follows the input, so the bytes of both directions count.
    """
    return program.target.wire_seconds(sum(link_bytes(program)), 0)


def list_bytes(program: NetworkCoreProgram, segment: NetworkCoreSegment) -> tuple[int, int]:
    """Return the bytes to the core and from it for one list of one inference."""
    sent = FRAME + _START
    received = 2 * FRAME + _DONE + segment.result_bytes  # ACK and DONE
    for entry in segment.written:
        tensor = program.tensors[entry.form.tensor]
        zeros = np.zeros(tensor.shape, tensor.dtype)
        for write in input_writes(entry, zeros, tensor.dtype, program.config, 0):
            row = write.get("run", 0) * write.get("pixels", 0)
            size = len(write["data"])
            count = frames(size, row or 1, program.config.write_bytes)
            sent += size + count * (FRAME + WRITE_FIELDS)
            received += count * FRAME
    if not segment.result_bytes:
        for result in segment.results:
            size = result.place.pitches.vectors * program.config.array.depth
            count = -(-size // 1024)
            sent, received = sent + count * (FRAME + 8), received + count * FRAME + size
    return sent, received
