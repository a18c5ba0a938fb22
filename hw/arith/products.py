"""The products of MAC cells with several multipliers: how many, and of which factors."""

from weft.hw.arith.mac import Mac
from weft.latencies import tree

__all__ = ["FastInnerProducts", "PlainProducts", "ProductsMac"]


class ProductsMac(Mac):
    """A `Mac` that adds its products in a tree, one level a cycle."""

    @classmethod
    def products(cls, depth):
        """Number of products in a step."""
        raise NotImplementedError

    @classmethod
    def latency(cls, depth):
        return cls.LATENCY + tree(cls.products(depth))

    def factors(self, n):
        """Both factors of product ``n``; each is a list of values to add."""
        raise NotImplementedError


class PlainProducts(ProductsMac):
    """``dot(a, b) = sum(a[d] * b[d])``, with one multiplier for each pair."""

    @classmethod
    def products(cls, depth):
        return depth

    def factors(self, n):
        return [self.a[n]], [self.b[n]]


class FastInnerProducts(ProductsMac):
    """`weft.hw.arith.fip.FastInnerProductMac`, with one multiplier for two pairs."""

    CORRECTED = True

    @classmethod
    def products(cls, depth):
        return depth // 2

    def factors(self, n):
        d = 2 * n
        return [self.a[d], self.b[d + 1]], [self.a[d + 1], self.b[d]]
