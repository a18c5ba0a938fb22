"""JAX functions on an accelerator: products on the core, everything else in XLA.

====================  ===========================================================================
module                content
====================  ===========================================================================
`offloading`          `offload`: a function whose products run on a core
`primitives`          the two products as JAX primitives, with their derivatives and batches
`export`              `export`: a function becomes a program for a core
`nodes`               operators of JAX as operators of ONNX, for `export`
====================  ===========================================================================
"""

from importlib.util import find_spec

from weft.hints import to_install

if find_spec("jax") is None:  # the framework, not this package
    raise ModuleNotFoundError(
        f"weft.jax needs the package jax; {to_install(extra='jax', make='')}", name="jax"
    )

from weft.jax.export import export, to_onnx
from weft.jax.offloading import Offloaded, offload

__all__ = ["Offloaded", "export", "offload", "to_onnx"]
