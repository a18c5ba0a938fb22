"""PyTorch models on an accelerator: a backend of `torch.compile`, with products on the core.

====================  ===========================================================================
module                content
====================  ===========================================================================
`backend`             the backend ``weft``, its options, and the report
`graphs`              graphs of ATen operators with their products on an accelerator
`products`            which products an ATen operator has
`convolutions`        a convolution, its gradients and its transpose as one kind of product
`quantized`           int8 values with a scale in graphs that are quantized with PT2E
====================  ===========================================================================
"""

from importlib.util import find_spec

from weft.hints import to_install

if find_spec("torch") is None:  # the framework, not this package
    raise ModuleNotFoundError(
        f"weft.torch needs the package torch; {to_install(extra='torch', make='')}", name="torch"
    )

from weft.torch.backend import backend, record, report

__all__ = ["backend", "record", "report"]
