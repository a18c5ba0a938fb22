"""``weft demo``: a network whole on a simulated network core."""

from pathlib import Path

from weft.cli.arguments import output_file, path

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "show a network at work on a simulated chip"
DESCRIPTION = """\
A small network core classifies handwritten digits: the whole network runs on the Verilated core,
from its own memory. Then the timeline of one inference is drawn, in the terminal and as demo.png.

Exit code 1 if a result differs from the golden model, or if the measured cycles differ from the
cycle model.
"""


def add(parser):
    """Add the arguments of ``weft demo``."""
    parser.add_argument(
        "--out", metavar="DIR", default="out", type=path("out"),
        help="folder of the picture, demo.png; default out",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    picture = output_file(Path(args.out) / "demo.png")
    from weft.cli.demo_timeline import show
    from weft.sim import tools

    for require in (tools.verilator, tools.compiler):
        require()
    return show(picture)
