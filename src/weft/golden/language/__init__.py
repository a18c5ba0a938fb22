"""Golden models of language models: exact integers as a core computes them, and float32.

================  ===============================================================================
module            content
================  ===============================================================================
`shape`           dimensions of a model, and its weights in float32
`operations`      scaling, norm, rotation, and functions by tables, in integers
`sampling`        choice of the next token, and the random numbers
`integer_model`   the model in integers: int8 weights, int16 maps, int32 sums
`float_model`     the same model in float32, as llama2.c computes it
================  ===============================================================================
"""

from weft.golden.language.float_model import FloatModel
from weft.golden.language.integer_model import IntegerModel, IntegerWeights
from weft.golden.language.shape import Shape, Weights

__all__ = ["FloatModel", "IntegerModel", "IntegerWeights", "Shape", "Weights"]
