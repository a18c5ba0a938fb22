"""Panels as the loader writes them into a buffer, word by word; as a bench."""

from amaranth.lib.data import StructLayout

from weft.hw.control.loader import BufferWrite

__all__ = ["random_panel", "write_port"]


def write_port(geometry):
    """Of the loader's port for an operand."""
    write = BufferWrite(
        address=range(geometry.words // geometry.group), segments=geometry.segments,
        pages=geometry.pages, bytes_in=geometry.stream,
    )
    return StructLayout({"valid": 1, "write": write})


def random_panel(rng, geometry, words, *, carries_on=False, page=0):
    """The values of a panel, [edge][k], and its writes; the bytes past each word are zero."""
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
            whole, behind = segment == geometry.segments - 1, first + geometry.group
            writes.append({
                "line": 0, "segment": segment, "data": int.from_bytes(part, "little"),
                "begin": int(first == 0 and segment == 0 and not carries_on),
                "end": int(whole and behind >= words),
                "page": page + first // 16,
            })
    return values, [{"write": {"valid": 1, "write": write}} for write in writes]
