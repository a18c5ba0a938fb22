"""Operands as a Weft core takes them, results as it gives them; wants numpy alone.

All that is particular to a core is in design.json, which lies beside this file.
"""

import itertools
import json
import struct
from pathlib import Path

import numpy as np

DESIGN = json.loads(Path(__file__).with_name("design.json").read_text(encoding="utf-8"))
CONFIG, REGIONS, VERSION = (DESIGN[name] for name in ("config", "regions", "commands_version"))
FLOATS = CONFIG["dtype"] == "bf16"
A, B = 0, 1


def pack(lines, region):
    """The panels of an operand, [lines, k], as they follow a load."""
    g = REGIONS[region]
    words = -(-lines.shape[1] // g["depth"])
    panels, rows = -(-lines.shape[0] // g["edge"]), -(-words // g["group"])
    whole = np.zeros((panels * g["edge"], rows * g["group"] * g["depth"]), lines.dtype)
    whole[: lines.shape[0], : lines.shape[1]] = lines
    whole = whole.reshape(panels, g["edge"], rows * g["group"], g["depth"]).transpose(0, 2, 1, 3)
    moved = np.ascontiguousarray(whole).view(np.uint8).reshape(panels, rows, -1)
    stream = np.zeros((panels, rows, g["segments"] * CONFIG["bytes_in"]), np.uint8)
    stream[:, :, : moved.shape[2]] = moved
    return stream.tobytes()


def load(region, size, k):
    """The header of a load of a whole operand, to page 0."""
    g = REGIONS[region]
    words, panels = -(-k // g["depth"]), -(-size // g["edge"])
    pitch = -(-words // g["page"])
    return _padded(struct.pack(
        "<BBBBHHIII12x", 2, VERSION, region, 0, 0, pitch, panels, words, pitch * panels
    ))


def job(m, n, k, tag):
    """The header of the job of both operands."""
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
    """The sums [m, n] of a job out of the words of its results."""
    rows, cols, lanes = (CONFIG[name] for name in ("rows", "cols", "lanes"))
    values, place = np.frombuffer(data, "<f4" if FLOATS else "<i4"), 0
    out = np.zeros((m, n), values.dtype)
    for i, j in itertools.product(range(0, m, rows), range(0, n, cols)):
        width = min(cols, n - j)
        for row in range(i, min(i + rows, m)):
            out[row, j : j + width] = values[place : place + width]
            place += -(-width // lanes) * lanes
    return out
