"""Converts models to a newer operator set, in a process of its own.

onnx's converter trusts its models: an invalid one can abort the process, or take much memory.
"""

import os
import resource
import subprocess
import sys

from weft.network.errors import ModelError

__all__ = ["convert"]

LIMIT = 120  # seconds
MEMORY = 1 << 32  # bytes of the process, or 16 times the file if that is more


def convert(data: bytes, name: str, opset: int) -> bytes:
    """The file in operator set ``opset``.

    Raises ModelError if it cannot be converted, with the file's name.
    """
    what = f"{name}: cannot be converted to operator set {opset}"
    code = f"from weft.network.onnx import conversion; conversion.main({opset})"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], input=data, capture_output=True, timeout=LIMIT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
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


def main(opset: int):
    """Convert the model of the standard input to the standard output."""
    data = sys.stdin.buffer.read()
    memory = max(MEMORY, 16 * len(data))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import onnx.version_converter

    model = onnx.version_converter.convert_version(onnx.ModelProto.FromString(data), opset)
    sys.stdout.buffer.write(model.SerializeToString())
