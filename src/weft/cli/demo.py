"""``weft demo``: a network whole on a simulated network core."""

from pathlib import Path
from shlex import quote

from weft.cli.options import path
from weft.files import output_file, output_folder
from weft.hints import visible

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "show a network at work on a simulated chip"
DESCRIPTION = """\
A small network core classifies handwritten digits: the whole network runs on the Verilated core,
from its own memory. Then the timeline of one inference is drawn, in the terminal and as demo.png.
The same core then hears words in a sound that Weft makes: words.wav. Its spectrogram, the words
and the timeline are in words.png.

With --save, it writes the network (digits_cnn.tflite), ten pictures and a list of them with labels
(list.csv) into a folder, and simulates nothing: a first network for the other commands.

  weft demo
  weft demo --save digits
  weft run digits/digits_cnn.tflite --input digits/list.csv --board icebreaker

Exit code 1 if a result differs from the golden model, or if the measured cycles differ from the
cycle model.
"""


def add(parser):
    """Add the arguments of ``weft demo``."""
    parser.add_argument(
        "--out", metavar="DIR", default="out", type=path("out"),
        help="folder of the pictures, demo.png and words.png, and of words.wav; default out",
    )
    parser.add_argument(
        "--save", metavar="FOLDER", type=path("save"),
        help="write the network and ten pictures into this folder, and end",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.save is not None:
        return _save(output_folder(args.save))
    picture = output_file(Path(args.out) / "demo.png")
    for name in ("words.png", "words.wav"):
        output_file(Path(args.out) / name)
    from rich.console import Console

    from weft.cli import demo_timeline, demo_words
    from weft.sim import tools

    for require in (tools.verilator, tools.compiler):
        require()
    console = Console(highlight=False)
    status = demo_timeline.show(picture, console)
    return demo_words.show(picture.parent, console) or status


def _save(folder):
    """Write the network, a picture of each digit, and the list of the pictures."""
    from importlib import resources

    import numpy as np
    from PIL import Image

    from weft.demo import digits_images
    from weft.files import write_bytes, write_text, written_whole

    network = resources.files("weft.demo").joinpath("digits_cnn.tflite").read_bytes()
    write_bytes(folder / "digits_cnn.tflite", network)
    images, labels = digits_images()
    rows = ["file,label"]
    for digit in range(10):
        image = images[np.flatnonzero(labels == digit)[0]].reshape(8, 8)
        with written_whole(folder / f"{digit}.png") as part:
            Image.fromarray(np.round(255 * image).astype(np.uint8)).save(part, format="PNG")
        rows.append(f"{digit}.png,{digit}")
    write_text(folder / "list.csv", "\n".join(rows) + "\n")
    print(
        f"{visible(str(folder))}: digits_cnn.tflite, ten pictures and list.csv; type:\n"
        f"  weft boards {quote(str(folder / 'digits_cnn.tflite'))}\n"
        f"  weft run {quote(str(folder / 'digits_cnn.tflite'))} --board icebreaker --for networks"
        f" --on board --input {quote(str(folder / 'list.csv'))}"
    )
    return 0
