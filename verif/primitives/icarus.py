"""Runs a Verilog bench that prints its verdict in Icarus."""

import subprocess
import tempfile
from pathlib import Path

from weft.sim import tools

__all__ = ["run_bench"]

LIMIT = 1800  # seconds


def run_bench(texts: dict[str, str], top: str, **parameters) -> str:
    """The output of the bench ``top`` in the files ``texts``, with values for its parameters."""
    values = [f"-P{top}.{name}={value}" for name, value in parameters.items()]
    icarus = tools.icarus().path
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        subprocess.run(
            [icarus, "-g2005", "-o", top, "-s", top, *values, *texts], cwd=folder, check=True,
            timeout=LIMIT,
        )
        run = subprocess.run(
            ["vvp", "-n", top], cwd=folder, check=True, capture_output=True, text=True,
            timeout=LIMIT,
        )
    return run.stdout.strip()
