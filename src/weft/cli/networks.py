"""The network that ``weft sim`` runs for each data type, and its results by the golden model."""

from weft.dtypes import DTYPES

__all__ = ["NETWORKS"]


class _Int8Network:
    """The quantized digits network."""

    name = "INT8"

    @staticmethod
    def load():
        from weft.demo import Network

        return Network.load()

    @staticmethod
    def golden(run, layer, config):
        """The sums and the results of a layer, by the golden model."""
        from weft.golden import add_bias, matmul, requantize

        sums = matmul(run.x, layer.weights.T, a_zero_point=layer.x_zero_point)
        y = requantize(
            add_bias(sums, layer.bias), layer.multiplier, layer.shift, mode="tflite",
            zero_point=layer.y_zero_point, low=layer.low, high=layer.high,
        )
        return sums, y

    @staticmethod
    def matrix(random, *shape):
        """A random matrix."""
        import numpy as np

        return random.integers(-128, 128, shape, dtype=np.int8)

    @staticmethod
    def product(a, b, config):
        """A product, by the golden model."""
        from weft.golden import matmul

        return matmul(a, b)


class _Bf16Network:
    """The digits network with its weights rounded to bfloat16."""

    name = "BF16"

    @staticmethod
    def load():
        from weft.demo import Bf16Network

        return Bf16Network.load()

    @staticmethod
    def golden(run, layer, config):
        import numpy as np

        from weft.golden import clamp, matmul_bf16, to_bfloat16

        flush = {"flush_subnormals": config.flush_subnormals}
        if run.sums is not None:  # the core gave raw sums, and the host finished them
            sums = matmul_bf16(run.x, layer.weights.T, **flush)
            return sums, layer.finish(sums)
        y = matmul_bf16(run.x, layer.weights.T, start=layer.bias, **flush)
        if layer.relu:
            y = clamp(y, low=np.float32(0))
        return None, y if layer.results == np.float32 else to_bfloat16(y)

    @staticmethod
    def matrix(random, *shape):
        from ml_dtypes import bfloat16

        return random.standard_normal(shape).astype(bfloat16)

    @staticmethod
    def product(a, b, config):
        from weft.golden import matmul_bf16

        return matmul_bf16(a, b, flush_subnormals=config.flush_subnormals)


# By the name of the data type.
NETWORKS = DTYPES.layer("network", int8=_Int8Network, bf16=_Bf16Network)
