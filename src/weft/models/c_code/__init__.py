"""C code of a network for an SoC: arrays, and one function that calls the driver of an IP kit.

==============  ============================================================================
module          content
==============  ============================================================================
`generator`     the files of a network for a product core, and the templates of all cores
`network_core`  the files of a network for a network core
`tensors`       the addresses of tensors, their places in one static array, and their C text
`operators`     operators as calls of functions in `files`; products as structs with weights
`files`         fixed C files: layers and operators
==============  ============================================================================
"""

from weft.models.c_code.generator import c_files
from weft.models.c_code.network_core import network_core_c_files

__all__ = ["c_files", "network_core_c_files"]
