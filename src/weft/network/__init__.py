"""Networks: import a trained network, compile it for a core, run it, explain it.

==================  =============================================================================
module              content
==================  =============================================================================
`ir`                tensors and nodes: what importers write and the compiler reads
`tflite`, `onnx`    importers: a file becomes a `Graph`
`kernels`           operators that the host computes, exactly, in numpy
`lowering`          windows and groups become matrix products for the core
`compiler`          places nodes, plans jobs, predicts cycles: a `Graph` becomes a `Program`
`program`           the compiled network, and its file
`session`           runs a program on a core behind any transport
`report`            explains a program: text, JSON, HTML
==================  =============================================================================
"""

from weft.network.errors import ModelError

__all__ = ["ModelError"]
