"""The bytes on the link of a network core, and their time."""

import numpy as np

from weft.frames import WRITE_FIELDS
from weft.models.network_core.list_steps import FRAME, frames
from weft.models.network_core.places import input_writes
from weft.models.network_core.program import NetworkCoreProgram, NetworkCoreSegment

__all__ = ["link_bytes", "link_seconds", "list_bytes"]

_START = 8  # bytes of payload
_DONE = 8  # bytes of payload before the result


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
