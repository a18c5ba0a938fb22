"""A task that is a program in a folder of its own: files come in and go out as bytes.

An engine can so move the files from one machine to another.
"""

import json
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.files import write_bytes
from weft.sim.cache import folder
from weft.tasks.limits import OverLimit, RunLimits, run_limited

__all__ = ["StepResult", "run_program"]


@dataclass(frozen=True)
class StepResult:
    """The result of a program.

    Attributes
    ----------
    outcome : object
        What came of it. It has ``failure``, a text that is empty after a success.
    files : dict of bytes
        By name, compressed with zlib.
    """

    outcome: Any
    files: dict[str, bytes] = field(default_factory=dict)


def run_program(
    command: Sequence[str], files: dict[str, bytes], outcome_type: Callable[..., Any], *,
    place: str, title: str, limits: RunLimits, stopped: Callable[[], bool],
    outputs: Callable[[Any], Sequence[str]],
) -> StepResult:
    """Run a program that writes ``outcome.json`` into its folder.

    Parameters
    ----------
    command : sequence of str
    files : dict of bytes
        The input files by name, compressed with zlib.
    outcome_type : callable
        Makes the outcome from the fields of ``outcome.json``. It must also take ``failure`` and
        ``detail`` alone: ``time`` or ``memory`` if the program exceeds a limit, ``crash`` if it
        ends without an outcome.
    place : str
        Name of the parent folder, in Weft's build folder.
    title : str
        Name of the run, for messages.
    limits : RunLimits
    stopped : callable
        Whether the run must end early.
    outputs : callable
        The names of the output files, from the outcome.

    Raises
    ------
    weft.tasks.limits.Stopped
        If ``stopped()`` became true.
    """
    parent = folder() / place
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        here = Path(name)
        for file, data in files.items():
            write_bytes(here / file, zlib.decompress(data))
        try:
            status, output = run_limited(command, here, limits, stopped)
        except OverLimit as over:
            return StepResult(outcome_type(failure=over.kind, detail=f"{title}: {over}"))
        try:
            outcome = outcome_type(**json.loads((here / "outcome.json").read_text("utf-8")))
            found = {
                file: zlib.compress((here / file).read_bytes(), 6) for file in outputs(outcome)
            }
        except (OSError, TypeError, ValueError):
            last = output.strip().splitlines()[-1:] or ["no output"]
            detail = f"{title}: exit code {status} without a result: {last[0]}"
            return StepResult(outcome_type(failure="crash", detail=detail))
        return StepResult(outcome, found)
