"""The second part of ``weft demo``: the network hears words in a sound, window after window."""

import itertools
import wave
from importlib import resources
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

import weft
from weft.cli.demo_timeline import (
    CLOCK,
    config,
    draw_phases,
    prediction,
    print_timeline,
    simulated,
    verdict,
)
from weft.demo import words
from weft.files import written_whole

__all__ = ["SPOKEN", "compiled", "draw", "draw_golden", "hear", "show", "sound", "spotted"]

SPOKEN = "yes", "weft", "no", "go", "weft", "stop"
KEYWORD = "weft"
SEED = 5  # of the voices
STEP = 4  # frames from a window to the next one
SURE = 2  # windows that hear the same word, one after the other
COLUMNS, LINES = 78, words.BANDS // 2  # characters of the spectrogram
_COLORS = (40, 20, 70), (60, 110, 180), (250, 230, 120)  # of a silent band to a loud one


def compiled():
    """The network, compiled for the core of the demonstration."""
    model = resources.files("weft.demo").joinpath("words.tflite").read_bytes()
    return weft.load(model, "words").compile(config())


def sound():
    """The samples of the words that are spoken."""
    return words.sentence(SPOKEN, np.random.default_rng(SEED))[0]


def hear(session, bands):
    """The number of the word in each window of a spectrogram; 0 is no word."""
    return [int(np.argmax(session(x))) for x in words.windows(bands, STEP)]


def spotted(heard):
    """The words that `SURE` windows or more hear one after the other, and the middle frame of each.

    Parameters
    ----------
    heard : list of int
        By window, as of `hear`.

    Returns
    -------
    list of tuple
        Name, frame.
    """
    found, first = [], 0
    for word, run in itertools.groupby(heard):
        count = len(list(run))
        if word and count >= SURE:
            middle = STEP * (first + (count - 1) / 2) + words.FRAMES / 2
            found.append(([*words.WORDS][word - 1], middle))
        first += count
    return found


def show(folder: Path, console: Console) -> int:
    """Hear the words, draw the sound and the timeline of an inference; return the exit code."""
    program, samples = compiled(), sound()
    bands = words.log_bands(samples)
    console.print(
        f"\n{program.name}: {len(program.layers)} layers on the same core hear"
        f" {len(samples) / words.RATE:.1f} s of speech that Weft makes itself"
    )
    with program.open(simulated(config())) as session, program.open("golden") as golden:
        heard = hear(session, bands)
        right = heard == hear(golden, bands)
        cycles = session.cycles
    found, predicted = spotted(heard), prediction(program)
    _print_bands(console, bands, found)
    print_timeline(console, program, predicted)
    draw(program, predicted, samples, found, folder / "words.png")
    _write(samples, folder / "words.wav")
    times = sum(name == KEYWORD for name, _ in found)
    said = "as they were spoken" if [name for name, _ in found] == [*SPOKEN] else (
        f"spoken were {', '.join(SPOKEN)}"
    )
    console.print(
        f'"{KEYWORD}" {times} times, in {", ".join(name for name, _ in found)}: {said}.'
        f" {len(heard)} windows, each an inference of {cycles:,} cycles: {cycles / CLOCK:.0f} us at"
        f" {CLOCK} MHz. Picture: {folder / 'words.png'}, sound: {folder / 'words.wav'}"
    )
    return verdict(console, right, cycles, predicted)


def _print_bands(console, bands, found):
    """Print the spectrogram, high bands first, and the spotted words below it."""
    edges = np.linspace(0, len(bands), COLUMNS + 1).astype(int)
    loud = np.stack([bands[a:b].max(0) for a, b in itertools.pairwise(edges)])
    loud = np.clip((loud - np.median(loud)) / (loud.max() - np.median(loud)), 0, 1)
    colors = console.color_system is not None and not console.no_color
    text = Text(no_wrap=True)
    for line in reversed(range(LINES)):
        for column in loud:
            bottom, top = column[2 * line], column[2 * line + 1]
            if colors:
                text.append("▀", f"{_color(top)} on {_color(bottom)}")
            else:
                text.append(" ▀▄█"[(top > 0.5) + 2 * (bottom > 0.5)])
        text.append("\n")
    names = [" "] * COLUMNS
    for name, frame in found:
        middle = round(frame * COLUMNS / len(bands) - len(name) / 2)
        first = max(0, min(middle, COLUMNS - len(name)))
        names[first : first + len(name)] = name
    text.append("".join(names), "bold green")
    console.print(text)


def _color(loudness):
    """The color of a loudness of 0..1."""
    place = loudness * (len(_COLORS) - 1)
    n = min(int(place), len(_COLORS) - 2)
    mixed = (round(a + (b - a) * (place - n)) for a, b in zip(*_COLORS[n : n + 2], strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def draw(program, predicted, samples, found, path: Path) -> None:
    """Draw the sound, its spectrogram with the spotted words, and the timeline of an inference."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    wave_axes, bands_axes, axes = figure.subplots(3, height_ratios=(1, 2, 3))
    seconds = len(samples) / words.RATE
    wave_axes.plot(np.arange(len(samples)) / words.RATE, samples, color="#3b6fb5", linewidth=0.3)
    wave_axes.set_xlim(0, seconds)
    wave_axes.set_yticks([])
    wave_axes.set_xticks([])
    wave_axes.set_title("words that Weft speaks, and what its network hears")
    bands = words.log_bands(samples)
    bands_axes.imshow(
        bands.T, origin="lower", aspect="auto", cmap="viridis",
        vmin=float(np.median(bands)) - 2, extent=(0, seconds, 0, words.BANDS),
    )
    for name, frame in found:
        bands_axes.text(
            frame * words.HOP / words.RATE, words.BANDS - 1, name, color="white", ha="center",
            va="top", weight="bold" if name == KEYWORD else "normal",
            bbox={"facecolor": "#c04030" if name == KEYWORD else "#404040", "edgecolor": "none"},
        )
    bands_axes.set_ylabel("bands")
    bands_axes.set_xlabel("seconds")
    draw_phases(axes, program, predicted)
    axes.set_title("one window on the chip: the layers of an inference")
    with written_whole(path) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def draw_golden(path: Path) -> None:
    """Draw the picture from the golden model: the simulated core hears the same."""
    program, samples = compiled(), sound()
    with program.open("golden") as session:
        found = spotted(hear(session, words.log_bands(samples)))
    draw(program, prediction(program), samples, found, path)


def _write(samples, path):
    """Write the sound as a WAV file of 16 bits."""
    values = np.int16(np.clip(samples, -1, 1) * 32767)
    with written_whole(path) as part, wave.open(str(part), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(words.RATE)
        file.writeframes(values.tobytes())
