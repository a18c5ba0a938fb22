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

from weft.hints import to_install

try:
    import jax  # the framework, not this package
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"weft.jax needs the package jax; {to_install(extra='jax')}", name="jax"
    ) from error

from weft.jax.export import export, to_onnx
from weft.jax.offloading import Offloaded, offload

__all__ = ["Offloaded", "export", "offload", "to_onnx"]
