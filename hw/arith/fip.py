"""The fast inner product: two MACs per multiplier (Winograd 1968), exact for all operands."""

from weft.hw.arith.mac import Mac
from weft.latencies import TWO_STAGE_MAC

__all__ = ["FastInnerProductMac"]


class FastInnerProductMac(Mac):
    """``dot(a, b) = sum((a[d] + b[d+1]) * (a[d+1] + b[d])) - R - D``, over even d.

    ``R = sum(a[d] * a[d+1])`` is one number for each row of A, and ``D = sum(b[d] * b[d+1])`` is
    one for each column of B. `weft.hw.output.corrector` computes both as operands are loaded, and
    subtracts them from the results. The MAC cell computes the first sum, with 9 x 9 bit
    multipliers. ``depth`` is even; an odd K is padded with a zero in both operands. All sums are
    modulo 2^32, so the result is exact.

    Source: S. Winograd, A New Algorithm for Inner Product, IEEE Trans. Computers C-17 (1968); T.
    Pogue and N. Nicolici, Fast Inner-Product Algorithms and Architectures for Deep Neural Network
    Accelerators, IEEE Trans. Computers (2024).
    """

    LATENCY = TWO_STAGE_MAC
    CORRECTED = True

    def product(self):
        terms = [
            (self.a[d] + self.b[d + 1]) * (self.a[d + 1] + self.b[d])
            for d in range(0, self.depth, 2)
        ]
        return sum(terms[1:], terms[0])
