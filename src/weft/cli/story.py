"""``weft story``: a simulated chip tells a story, word by word."""

from pathlib import Path

from weft.cli.language import add_choice
from weft.cli.options import integer, path
from weft.files import output_file

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "let a simulated chip tell a story"
DESCRIPTION = """\
A language model on a simulated core: prompt, layers, cache and the choice of each token are the
work of the core, from its own memory. Words appear as the core writes them. Then the timeline of
the last token is drawn, in the terminal and as story.png.

  weft story
  weft story --prompt "Tom has a red ball." --tokens 100
  weft story --temperature 0.8 --seed 3

weft run takes other models: weft run stories260K.bin --on sim.

Exit code 1 if a token differs from the golden model, or if the measured cycles of a token differ
from the predicted ones.
"""


def add(parser):
    """Add the arguments of ``weft story``."""
    parser.add_argument("--prompt", metavar="TEXT", default="", help="how the story begins")
    parser.add_argument(
        "--tokens", metavar="INT", type=integer("tokens", 1), default=200,
        help="tokens that follow the prompt, at most; default 200",
    )
    add_choice(parser)
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="of the random numbers, with a temperature; 0 or more, default 1",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="out", type=path("out"),
        help="folder of the picture, story.png; default out",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    picture = output_file(Path(args.out) / "story.png")
    from weft.cli.story_timeline import show
    from weft.sim import tools

    for require in (tools.verilator, tools.compiler):
        require()
    return show(
        picture, args.prompt, args.tokens, temperature=args.temperature or 0.0,
        min_p=args.min_p or 0.0, seed=args.seed,
    )
