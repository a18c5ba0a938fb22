"""`ModelProcess`: a Verilated model that reads commands and writes answers."""

import subprocess
from pathlib import Path

from weft.sim.transport import wait_or_kill

__all__ = ["ModelProcess"]


class ModelProcess:
    """A running model. It is a context manager; the simulation ends with it.

    Parameters
    ----------
    executable : Path
    """

    def __init__(self, executable: Path):
        self._process = subprocess.Popen(
            [executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.stdin.close()
        wait_or_kill(self._process)
        self._process.stdout.close()
        self._process.stderr.close()

    def _send(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _receive(self, size):
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise RuntimeError(f"the simulation ended: {self._process.stderr.read().decode()}")
        return data
