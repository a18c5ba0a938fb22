"""A process that converts the model of its standard input with onnx's converter.

It is run as a script with the path of onnx's library, the operator set, and the memory in bytes.
It does not import the package onnx, which takes ten times as long as a conversion.
"""

import importlib.util
import resource
import sys

__all__ = ["main"]


def main(library: str, opset: int, memory: int):
    """Convert the model of the standard input to the standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    spec = importlib.util.spec_from_file_location("onnx_cpp2py_export", library)
    onnx = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(onnx)
    data = sys.stdin.buffer.read()
    sys.stdout.buffer.write(onnx.version_converter.convert_version(data, opset))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
