"""Networks: import a trained network, compile it for a core, run it, explain it.

====================  ===========================================================================
module                content
====================  ===========================================================================
`ir`                  tensors and nodes: what importers write and the compiler reads
`loading`             opens files: `weft.load`
`tflite`, `onnx`      importers: a file becomes a `Graph`
`language`            language models: importers, quantization, sessions
`kernels`             operators that the host computes, exactly, in numpy
`target`              the accelerator that a network is compiled for
`compiler`            makes a `Program` of a `Graph`, with these:
`placement`           decides where a product runs
`fusion`              fuses table operators into products
`lowering`            matrix operators as products
`windows`             convolutions as products
`products`            packs the operands of a product, with `arithmetic` and `rescale`
`schedule`            decides how weights reach the core
`program`, `work`     the compiled network, and what each of its steps executes
`program_file`        its file, with `encoding` and `program_check`
`session`             runs a program on a core, with `execution` and `inputs`
`oracles`             compares outputs with those of a runtime
`c_code`              C code of a program, for the driver of an IP kit
`report`              explains a program: text, JSON, HTML
====================  ===========================================================================
"""

from weft.models.errors import ModelError

__all__ = ["ModelError"]
