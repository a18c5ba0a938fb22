"""Random panels, and the writes by which the loader puts them into a buffer."""

from amaranth.lib.data import StructLayout

from weft.hw.control.job_table import BufferWrite

__all__ = ["random_panel", "write_port"]


def write_port(geometry):
    """Layout of the loader's write port for an operand."""
    write = BufferWrite(
        address=range(geometry.words // geometry.group), segments=geometry.segments,
        pages=geometry.pages, bytes_in=geometry.stream,
    )
    return StructLayout({"valid": 1, "write": write})


def random_panel(rng, geometry, words, *, continues=False, page=0):
    """The values of a panel, [edge][k], and its writes; bytes after a word are zero.

    With ``continues`` the panel continues the one before, as with the flag CONTINUE.
    """
    limits = (-128, 127)
    values = [
        [rng.choice([*limits, rng.randint(*limits)]) for _ in range(words * geometry.depth)]
        for _ in range(geometry.edge)
    ]
    writes = []
    for first in range(0, words, geometry.group):
        line = b""
        for word in range(first, min(first + geometry.group, words)):
            for row in values:
                start = word * geometry.depth
                line += bytes(value & 255 for value in row[start : start + geometry.depth])
        line = line.ljust(geometry.segments * geometry.stream, b"\0")
        for segment in range(geometry.segments):
            part = line[segment * geometry.stream : (segment + 1) * geometry.stream]
            last_segment, next_word = segment == geometry.segments - 1, first + geometry.group
            writes.append({
                "line": 0, "segment": segment, "data": int.from_bytes(part, "little"),
                "begin": int(first == 0 and segment == 0 and not continues),
                "end": int(last_segment and next_word >= words),
                "page": page + first // 16,
            })
    return values, [{"write": {"valid": 1, "write": write}} for write in writes]
