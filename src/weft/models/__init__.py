"""Networks: import a trained network, compile it for a core, run it, explain it.

=================  ==============================================================
module             content
=================  ==============================================================
`ir`               tensors and nodes: what importers write and the compilers read
`loading`          opens files: `weft.load`
`tflite`, `onnx`   importers: a file becomes a `weft.models.ir.Graph`
`language`         language models: importers, quantization, sessions
`media`            pictures and sounds become inputs
`kernels`          operators that the host computes, exactly, in numpy
`target`           the accelerator that a network is compiled for
`exactness`        how exactly results equal those of a runtime
`dead_channels`    leaves out channels that no result needs
`compiler`         makes a program for a product core, with the next four
`placement`        where a product runs, and how its weights reach the core
`lowering`         convolutions and matrix products as A x B
`products`         packs the operands of a product
`arithmetic`       operands as the core has them; zero points, bias, rescaling
`network_core`     makes a program for a network core
`language_core`    makes a program for a language core
`program`, `work`  the compiled network, and what each of its steps executes
`program_file`     its file, with checks of its parts in `program_check`
`session`          runs a program on a product core, with `execution`
`program_session`  what sessions of all cores share
`chips`            the time of products on several chips
`oracles`          compares outputs with those of a runtime
`c_code`           C code of a program, for the driver of an IP kit
`report`           explains a program: text, JSON, HTML
`progress`         how much of a compilation is done
`errors`           the errors of this package
=================  ==============================================================
"""

from weft.models.errors import ModelError

__all__ = ["ModelError"]
