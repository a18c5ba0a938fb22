"""Reads ``.onnx`` files: `load` turns the bytes of one into a `weft.models.ir.Graph`.

====================  ========================================================================
module                content
====================  ========================================================================
`reading`             bytes become a checked model of operator set 13 or newer, of fixed sizes
`converter`           to a newer operator set, in a process of its own
`inference`           types of the outputs of one node
`nodes`               the nodes and tensors of the file as plain values
`source`              a model becomes operators, types and constants; constants are folded
`importer`            operators become nodes of the graph
`operands`            operands and results of quantized products
`products`            the order of the weights, the shapes of products and of windows
`integers`, `floats`  products of integers and of float32, with the neighbours that fuse
`einsum`              Einsum of two operands as a matrix product
`recurrent`           LSTM, GRU and RNN: a product of all inputs, and one at each step in time
`quantized_moves`     operators that only move values work on the bytes
`tables`              functions of one 8-bit number become tables
`host`                other operators for the host: kernels and their attributes
`fallback`            operators without a kernel: a model of one node, which onnxruntime runs
`quantize`            quantizes a float model, with onnxruntime; reads files of its inputs
`int4`                weights of int4 in a quantized model
`agreement`           compares a quantized model with its float model, tensor by tensor
====================  ========================================================================

Reading needs the package ``onnx``; the fallback and `quantize` need ``onnxruntime`` too. Both are
in the extra ``onnx``.
"""

from weft.models.onnx.importer import load

__all__ = ["load"]
