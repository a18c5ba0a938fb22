"""A stand-in for `weft.explore.flow`: its outcome follows from the point, at once.

Numbers of rows choose what happens: 60 hangs, 61 takes memory, 62 ends without a result, 63 does
not fit. An argument before the step is the seconds that place and route takes. Each run adds a line
to the file FAKE_LOG.
"""

import json
import os
import sys
import time
from pathlib import Path

HANGS, GROWS, CRASHES, OVERFULL = 60, 61, 62, 63


def default_rows():
    from weft.config import Config  # its import takes longer than all the rest

    return Config().rows


def main():
    *seconds, step = sys.argv[1:]
    point = json.loads(Path("point.json").read_text())
    rows = point["config"].get("rows") or default_rows()
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(f"{step} {rows} {point['seed']} {os.getpid()}\n")
    if rows == HANGS:
        time.sleep(600)
    if rows == GROWS:
        kept = bytearray(512 << 20)
        time.sleep(600)
        del kept
    if rows == CRASHES:
        sys.exit("the tool has a bug")
    outcome = {}
    if rows == OVERFULL:
        text = "the design does not fit the LFE5U-25F: it needs DSP 30 of 28"
        outcome = {"failure": "overfull", "detail": text}
    elif step == "synthesize":
        Path("top.json").write_text(f"netlist of {rows} rows")
        Path("cells.json").write_text("{}")
        outcome = {"seconds": {"synthesis": 0.1}}
    else:
        time.sleep(float(seconds[0]) if seconds else 0)
        assert Path("top.json").read_text() == f"netlist of {rows} rows"
        if step == "place":
            Path("layout.json").write_text('[["array", "LUT", 3, 4, "SLICEA.LUT0"]]')
        outcome = {
            "used": {"LUT": 1000 * rows, "FF": 900 * rows, "DSP": rows, "RAM": 12},
        } | ({} if step == "pack" else {
            "fmax": 100.0 + point["seed"], "path": "a to b, 1.0 ns in cells, 2.0 ns between them",
            "seconds": {"place": 0.2},
        })
    Path("outcome.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
