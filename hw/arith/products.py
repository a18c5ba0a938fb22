"""What leaves of several multipliers multiply: which products there are, and of which factors."""

from amaranth.utils import ceil_log2

from weft.hw.arith.mac import Mac

__all__ = ["FastInnerProducts", "PlainProducts", "ProductsMac"]


class ProductsMac(Mac):
    """A `Mac` whose products are added in a tree, a cycle a level."""

    @classmethod
    def products(cls, depth):
        """How many there are in a step."""
        raise NotImplementedError

    @classmethod
    def latency(cls, depth):
        return cls.LATENCY + ceil_log2(cls.products(depth))

    def factors(self, n):
        """Both of product ``n``: for each the values that it is the sum of."""
        raise NotImplementedError


class PlainProducts(ProductsMac):
    """``dot(a, b) = sum(a[d] * b[d])``, a multiplier each."""

    @classmethod
    def products(cls, depth):
        return depth

    def factors(self, n):
        return [self.a[n]], [self.b[n]]


class FastInnerProducts(ProductsMac):
    """`weft.hw.arith.fip.FastInnerProductMac`, a multiplier for two pairs."""

    CORRECTED = True

    @classmethod
    def products(cls, depth):
        return depth // 2

    def factors(self, n):
        d = 2 * n
        return [self.a[d], self.b[d + 1]], [self.a[d + 1], self.b[d]]
