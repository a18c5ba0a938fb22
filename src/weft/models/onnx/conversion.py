"""Converts models to a newer operator set, in a process of its own.

onnx's converter trusts its models: an invalid one can abort the process, or take much memory.
"""

import subprocess
import sys
from pathlib import Path

from weft.models.errors import ModelError

__all__ = ["convert"]

LIMIT = 120  # seconds
MEMORY = 1 << 32  # bytes of the process, or 16 times the file if that is more


def convert(data: bytes, name: str, opset: int) -> bytes:
    """The file in operator set ``opset``.

    Raises ModelError if it cannot be converted, with the file's name.
    """
    from onnx import onnx_cpp2py_export

    what = f"{name}: cannot be converted to operator set {opset}"
    arguments = onnx_cpp2py_export.__file__, str(opset), str(max(MEMORY, 16 * len(data)))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", Path(__file__).with_name("converter.py"), *arguments],
            input=data, capture_output=True, timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{what}: it takes more than {LIMIT} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        reason = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if done.returncode < 0:
            reason = f"onnx stopped (signal {-done.returncode})"
        raise ModelError(f"{what}: {reason[:300]}")
    return done.stdout
