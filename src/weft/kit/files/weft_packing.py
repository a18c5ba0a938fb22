"""Packs operands for a Weft core, and unpacks its results. It needs numpy only.

The constants of the core come from design.json in the same folder.
"""

import itertools
import json
import struct
from pathlib import Path

import numpy as np

DESIGN = json.loads(Path(__file__).with_name("design.json").read_text(encoding="utf-8"))
CONFIG, REGIONS, VERSION = (DESIGN[name] for name in ("config", "regions", "commands_version"))
FLOATS = DESIGN["floats"]  # operands and sums are floating-point numbers
A, B = 0, 1


def pack(lines, region):
    """The data of a load: panels of an operand [lines, k]. Lines: rows of A or columns of B."""
    g = REGIONS[region]
    words = -(-lines.shape[1] // g["depth"])
    panels, rows = -(-lines.shape[0] // g["edge"]), -(-words // g["group"])
    padded = np.zeros((panels * g["edge"], rows * g["group"] * g["depth"]), lines.dtype)
    padded[: lines.shape[0], : lines.shape[1]] = lines
    padded = padded.reshape(panels, g["edge"], rows * g["group"], g["depth"]).transpose(0, 2, 1, 3)
    data = np.ascontiguousarray(padded).view(np.uint8).reshape(panels, rows, -1)
    stream = np.zeros((panels, rows, g["segments"] * CONFIG["bytes_in"]), np.uint8)
    stream[:, :, : data.shape[2]] = data
    return stream.tobytes()


def load(region, size, k):
    """The header of a load of an operand with ``size`` lines, to page 0 of its buffer."""
    g = REGIONS[region]
    words, panels = -(-k // g["depth"]), -(-size // g["edge"])
    pitch = -(-words // g["page"])
    return _padded(struct.pack(
        "<BBBBHHIII12x", 2, VERSION, region, 0, 0, pitch, panels, words, pitch * panels
    ))


def job(m, n, k, tag):
    """The header of a job for operands that start at page 0 of their buffers."""
    a, b = REGIONS[A], REGIONS[B]
    words = -(-k // a["depth"])
    pitch = -(-words // a["page"])
    spans = (-(-m // a["edge"]) * pitch, -(-n // b["edge"]) * pitch)
    return _padded(struct.pack(
        "<BBHHHIHHHHHHHHHH", 1, VERSION, tag, 0, m, k, n, 0, pitch, spans[0], 0, pitch, spans[1],
        0, 0, 0,
    ))


def _padded(header):
    return header + bytes(max(0, CONFIG["bytes_in"] - len(header)))


def unpack(data, m, n):
    """The sums [m, n] of a job, from the bytes of its results."""
    rows, cols, lanes = (CONFIG[name] for name in ("rows", "cols", "lanes"))
    values, start = np.frombuffer(data, "<f4" if FLOATS else "<i4"), 0
    out = np.zeros((m, n), values.dtype)
    for i, j in itertools.product(range(0, m, rows), range(0, n, cols)):
        width = min(cols, n - j)
        for row in range(i, min(i + rows, m)):
            out[row, j : j + width] = values[start : start + width]
            start += -(-width // lanes) * lanes
    return out
