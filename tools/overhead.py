"""What a step of training costs besides the arithmetic of the core, for the tools of frameworks."""

import contextlib
import importlib.util
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tools import results
from weft import Accelerator, Config
from weft.commands import Job
from weft.host import GoldenTransport
from weft.host.product_stream import ProductStream
from weft.host.transport import Packet

__all__ = ["RUNS", "Repeating", "example", "measured", "recorded"]

RUNS = 400
BATCHES = 50, 100, 200
ABOUT = f"""\
products on a core of 8x8x1 in BF16. This core does not compute: it repeats the results of a golden
core from a step before, which has the same operands, and its own time is subtracted. So `Weft` is
all that a step costs beside the core:

* `driver`: operands become the words of the command stream, and words become results; any core
  needs this.
* `weft.FRAMEWORK`: the rest: NAME, the calls from it, conversions to bfloat16, windows of
  convolutions.

Steps of each kind take turns, {RUNS} of each. A time is the tenth percentile, as processor time of
all threads: other work on the machine makes steps slower, and a few steps may be much faster than
the others. `ratio` is `Weft` over the plain step."""
HEADS = """\
| batch | plain NAME | Weft | driver | weft.FRAMEWORK | ratio |
|---:|---:|---:|---:|---:|---:|
"""


class Repeating(GoldenTransport):
    """A golden core that computes one round of commands, and then repeats its results.

    Frameworks may run independent products in another order: commands with the headers of some of
    the first round get their results, and equal ones take turns.
    """

    def __init__(self, config: Config):
        super().__init__(config)
        self._round: dict[tuple, deque[list[tuple[int, Packet]]]] = {}
        self._repeats = False

    def repeat(self):
        """The first round has ended."""
        self._repeats = True

    def send(self, commands):
        headers = [header for header, _ in commands]
        first = next(header.tag for header in headers if isinstance(header, Job))
        key = tuple(h.tagged(0) if isinstance(h, Job) else h for h in headers)
        if not self._repeats:
            super().send(commands)
            packets = [((p.tag - first) % (1 << 16), p) for p in self._packets]
            self._round.setdefault(key, deque()).append(packets)
            return
        packets = self._round[key][0]
        self._round[key].rotate(-1)
        self._packets = deque(
            replace(packet, tag=(first + place) % (1 << 16)) for place, packet in packets
        )


def example(framework: str):
    """The module of the example ``train_FRAMEWORK.py``."""
    file = Path(__file__).resolve().parent.parent / "examples" / f"train_{framework}.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def timed(spent: dict[str, float], *methods):
    """Add the seconds in methods, each given as (owner, name), to ``spent`` by their names."""
    with contextlib.ExitStack() as undo:
        for owner, name in methods:
            call = getattr(owner, name)

            def run(*arguments, call=call, name=name, **given):
                start = time.thread_time()
                try:
                    return call(*arguments, **given)
                finally:
                    spent[name] = spent.get(name, 0.0) + time.thread_time() - start

            setattr(owner, name, run)
            undo.callback(setattr, owner, name, call)
        yield


def measured(
    plain: Callable[[], None], step: Callable[[], None], accelerator: Accelerator,
    transport: Repeating, runs: int = RUNS,
) -> dict[str, float]:
    """The milliseconds of processor time of plain steps, of Weft, and of its parts.

    ``plain`` and ``step`` run a step to its end, the second one on the accelerator.
    """
    spent: dict[str, float] = {}
    found: dict[str, list[float]] = {"plain": [], "weft": [], "driver": []}

    def seconds(function, *methods):
        spent.clear()
        with timed(spent, *methods):
            start = time.process_time()
            function()
            return time.process_time() - start

    step()
    transport.repeat()
    core = transport, "send"
    for _ in range(runs + 2):  # the first ones compile
        found["plain"].append(seconds(plain))
        # The driver has steps of its own: to take more times takes time.
        found["weft"].append(seconds(step, core) - spent["send"])
        seconds(step, core, (accelerator, "execute"), (ProductStream, "read"))
        found["driver"].append(spent["execute"] - spent["send"] + spent["read"])
    times = {name: 1e3 * _percentile(values[2:]) for name, values in found.items()}
    return times | {"rest": times["weft"] - times["driver"]}


def _percentile(values):
    """The tenth percentile: XLA runs a few steps of plain JAX in half of the time of the others."""
    return sorted(values)[len(values) // 10]


def recorded(
    framework: str, name: str, about: str, measure: Callable[[int], dict[str, float]],
    limit: float = math.inf,
) -> int:
    """Print and record the times of a framework; return the exit code: 1 if a ratio is too large.

    Parameters
    ----------
    framework, name : str
        In names of modules, and in texts.
    about : str
        What a step is.
    measure : callable
        ``measure(batch)`` returns what `measured` does.
    limit : float
        The largest ratio.
    """
    def named(text):
        return text.replace("FRAMEWORK", framework).replace("NAME", name)

    about += named(ABOUT)
    if limit < math.inf:
        about += f" The command fails if it is above {limit:g}."
    lines, above = [named(HEADS)], False
    for batch in BATCHES:
        ms = measure(batch)
        ratio = ms["weft"] / ms["plain"]
        above |= ratio > limit
        times = (ms[part] for part in ("plain", "weft", "driver", "rest"))
        cells = [f"{batch}", *(f"{value:.2f} ms" for value in times), f"{ratio:.2f}"]
        lines.append(f"| {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    print(results.save(
        f"{framework}-overhead", [results.table("".join(lines))], title=f"Training in {name}",
        command=f"make {framework}-overhead", about=about,
        of=[f"tools.{framework}_overhead", f"weft.{framework}"],
    ))
    return int(above)
