"""The work of ``weft demo``: digits, and the timeline of the layers, in a terminal and drawn."""

from importlib import resources
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Console
from rich.table import Table
from rich.text import Text

import weft
from weft.cli.progress import slow_task
from weft.config import Config
from weft.demo import digits_images
from weft.files import written_whole
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import DESCRIPTOR_BYTES, ListEnd, split, unpack
from weft.sim.network_core import SimulatedRunner

__all__ = [
    "CLOCK", "compiled", "config", "draw", "draw_phases", "phases", "prediction", "print_timeline",
    "show", "show_digits", "simulated", "verdict",
]

CLOCK = 100  # MHz, for the time of an inference
SHOWN, ACROSS = 16, 8  # digits, and digits in a line
WIDTH = 44  # characters of the timeline
PHASES = {  # color, and letter of the timeline
    "load": ("#e0a030", "l"), "compute": ("#3b6fb5", "c"), "drain and store": ("#4c9a5e", "s"),
}


def config() -> NetworkCoreConfig:
    """A small core: 64 MAC a cycle, 20 KB of memory."""
    core = Config(
        rows=4, cols=4, depth=4, lanes=4, requantize="tflite", activation="none",
    )
    return NetworkCoreConfig(array=core, words=1024, b_words=160, lines=128)


def compiled():
    """The network of the demonstration, compiled for its core."""
    model = resources.files("weft.demo").joinpath("digits_cnn.tflite").read_bytes()
    return weft.load(model, "digits_cnn").compile(config())


def simulated(core) -> SimulatedRunner:
    """The simulated core; its model is built the first time."""
    with slow_task("building the model of the core (once, maybe minutes)"):
        return SimulatedRunner(core)


def show(picture: Path, console: Console) -> int:
    """Classify digits, and draw the timeline of an inference; return the exit code."""
    core, program = config(), compiled()
    images, labels = (values[:SHOWN] for values in digits_images())
    macs = sum(step.macs for step in program.layers)
    console.print(
        f"{program.name}: {len(program.layers)} layers, {macs:,} MAC, on a simulated core of"
        f" {core.array.peak} MAC/cycle with {core.memory_bytes // 1024} KB of memory"
    )
    shape = program.tensors[program.inputs[0]].shape
    scores, right = [], True
    with program.open(simulated(core)) as session, program.open("golden") as golden:
        for image in images:
            x = image.reshape(shape)
            scores.append(session(x).ravel())
            right &= np.array_equal(scores[-1], golden(x).ravel())
            if len(scores) % ACROSS == 0:
                show_digits(console, images, labels, scores, len(scores) - ACROSS)
        cycles = session.cycles
    predicted = prediction(program)
    correct = sum(int(np.argmax(s)) == label for s, label in zip(scores, labels, strict=True))
    print_timeline(console, program, predicted)
    draw(program, predicted, picture)
    console.print(
        f"{correct} of {SHOWN} digits are right. An inference takes {cycles:,} cycles:"
        f" {cycles / CLOCK:.0f} us at {CLOCK} MHz. Picture: {picture}"
    )
    return verdict(console, right, cycles, predicted)


def verdict(console: Console, right: bool, cycles: int, predicted) -> int:
    """Print what a run got wrong; return the exit code."""
    if not right:
        console.print("a result differs from the golden model", style="bold red")
    if cycles != predicted.cycles:
        console.print(f"the cycle model predicts {predicted.cycles:,} cycles", style="bold red")
    return int(not right or cycles != predicted.cycles)


def show_digits(console, images, labels, scores, first):
    """Print a line of digits, and what the network says to each."""
    count = len(scores)
    table = Table.grid(padding=(0, 2))
    colors = console.color_system is not None and not console.no_color
    table.add_row(*(_picture(images[n], colors) for n in range(first, count)))
    table.add_row(*(
        Text(f"{np.argmax(scores[n])}", style="bold green", justify="center")
        if np.argmax(scores[n]) == labels[n]
        else Text(f"{np.argmax(scores[n])}, not {labels[n]}", style="bold red")
        for n in range(first, count)
    ))
    console.print(table)


def _picture(image, colors):
    """An 8 x 8 image in half blocks: two pixels in a character."""
    pixels = (image.reshape(8, 8) * 255 / image.max()).astype(int)
    text = Text(no_wrap=True)
    for y in range(0, 8, 2):
        for top, bottom in zip(pixels[y], pixels[y + 1], strict=True):
            if colors:
                text.append("▀", f"rgb({top},{top},{top}) on rgb({bottom},{bottom},{bottom})")
            else:
                text.append(" ▀▄█"[(top > 100) + 2 * (bottom > 100)])
        text.append("\n" if y < 6 else "")
    return text


def prediction(program):
    """The times of all loads and jobs of the list of an inference."""
    banks, size, entries = program.config.banks, DESCRIPTOR_BYTES, []
    [run] = program.segments
    while not entries or not isinstance(entries[-1], ListEnd):
        entries.append(unpack(run.run[len(entries) * size :][:size]))
    return predict_list(
        program.config, entries, split(run.run_first, banks), split(program.log, banks)
    )


def phases(program, prediction):
    """Yield the name of each row of the timeline, and its phases: name, start, end."""
    if prediction.loads:
        yield "loads", [("load", start, end) for start, end in prediction.loads]
    for step in program.layers:
        found = []
        for job in range(step.first_job, step.first_job + step.jobs):
            (start, end), computed = prediction.jobs[job], prediction.computed[job]
            found += [
                ("compute", prediction.started[job], computed),
                ("drain and store", max(start, computed), end),
            ]
        yield " + ".join(step.operators), found


def print_timeline(console: Console, program, prediction) -> None:
    """Print the timeline of an inference."""
    table = Table.grid(padding=(0, 2))
    scale = WIDTH / prediction.cycles
    for name, found in phases(program, prediction):
        letters, styles = [" "] * WIDTH, []
        for phase, start, end in found:
            color, letter = PHASES[phase]
            first = min(int(start * scale), WIDTH - 1)
            last = min(max(first + 1, round(end * scale)), WIDTH)
            letters[first:last] = letter * (last - first)
            styles.append((f"{color} on {color}", first, last))
        line = Text("".join(letters), no_wrap=True)
        for style in styles:
            line.stylize(*style)
        spent = sum(end - start for _, start, end in found)
        table.add_row(name.lower(), line, Text(f"{spent:,}", justify="right"))
    key = Text()
    for phase, (color, letter) in PHASES.items():
        key.append(2 * letter, f"{color} on {color}")
        key.append(f" {phase}  ")
    table.add_row("", key, "cycles")
    console.print(table)


def draw(program, prediction, path: Path) -> None:
    """Draw the timeline of an inference."""
    rows = list(phases(program, prediction))
    figure = Figure(figsize=(9, 1.2 + 0.45 * len(rows)), layout="constrained")
    axes = figure.subplots()
    draw_phases(axes, program, prediction)
    axes.set_title(f"{program.name}: one inference on the chip")
    with written_whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def draw_phases(axes, program, prediction) -> None:
    """Draw the phases of each row of the timeline, and their key."""
    rows = list(phases(program, prediction))
    for n, (_, found) in enumerate(rows):
        for phase, start, end in found:
            axes.barh(n, end - start, left=start, color=PHASES[phase][0], height=0.7)
    axes.set_yticks(range(len(rows)), [name.lower() for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, prediction.cycles)
    axes.set_xlabel("cycles since START")
    handles = [Rectangle((0, 0), 1, 1, color=color) for color, _ in PHASES.values()]
    axes.figure.legend(handles, PHASES, loc="outside lower center", ncols=len(PHASES))
