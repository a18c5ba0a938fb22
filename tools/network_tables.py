"""The folder of the networks of MLPerf Tiny, tables in pages, and records of these networks.

The folder WEFT_NETWORKS has the int8 files of MLPerf Tiny (github.com/mlcommons/tiny):
``ad01_int8.tflite``, ``kws_int8.tflite``, ``resnet8_int8.tflite``, ``vww_96_int8.tflite``.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tools import results
from weft.models.network_core.prediction import predict_run
from weft.models.network_core.program import NetworkCoreProgram
from weft.network_core.cycles import ProgramTiming

__all__ = ["networks_folder", "predicted_cycles", "replaced", "save_table"]


def networks_folder() -> Path | None:
    """The folder WEFT_NETWORKS; None, with a message, if it is not set."""
    folder = os.environ.get("WEFT_NETWORKS")
    if not folder:
        print("WEFT_NETWORKS must be a folder with the files of MLPerf Tiny", file=sys.stderr)
        return None
    return Path(folder)


def save_table(name: str, table: Callable[[Path], str], **record) -> int:
    """Save the record ``name`` with one table of the networks in the folder; the exit code.

    ``record`` are parameters of `tools.results.save`.
    """
    folder = networks_folder()
    if folder is None:
        return 2
    print(results.save(name, [results.table(table(folder))], **record))
    return 0


def predicted_cycles(program: NetworkCoreProgram, timing: ProgramTiming) -> int:
    """The cycles of all lists of a program, with a program memory of this timing."""
    return sum(
        predict_run(
            program.config, part.run, part.run_first, program.log, timing,
            on_chip=program.lists_on_chip,
        ).cycles
        for part in program.segments
    )


def replaced(path: Path, tables: dict[str, str]) -> str:
    """The text of a page with new tables: each after its comment ``begin: <name>``."""
    text = path.read_text(encoding="utf-8")
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda found, new=table: found[1] + new + found[2], text)
        if count != 1:
            comment = f"<!-- begin: {name} -->"
            raise ValueError(f"{path} must have the comment {comment} once, not {count}")
    return text
