"""Bytes over the link for one inference, both ways."""

__all__ = ["FRAME_BYTES", "WRITE_BYTES", "link_bytes"]

FRAME_BYTES = 12  # of a frame beside its payload
WRITE_BYTES = 1024  # data of a WRITE frame, at most
ADDRESS_BYTES = 4  # of a WRITE
START_BYTES, STATUS_BYTES = 8, 8  # payload of START, and of DONE before its results


def link_bytes(sent: int, received: int) -> int:
    """Return the bytes of the WRITE frames and their ACKs, of START, and of DONE with results."""
    writes = -(-sent // WRITE_BYTES)
    inputs = sent + writes * (FRAME_BYTES + ADDRESS_BYTES) + writes * FRAME_BYTES
    return inputs + FRAME_BYTES + START_BYTES + FRAME_BYTES + STATUS_BYTES + received
