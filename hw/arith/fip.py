"""The fast inner product: two MACs a multiplier (Winograd 1968), exact for all operands."""

from weft.hw.arith.mac import Mac

__all__ = ["FastInnerProductMac"]


class FastInnerProductMac(Mac):
    """``dot(a, b) = sum((a[d] + b[d+1]) * (a[d+1] + b[d])) - R - D``, over even d.

    ``R = sum(a[d] * a[d+1])`` is one number a row of A, and ``D = sum(b[d] * b[d+1])`` one a column
    of B: `weft.hw.output.corrector` adds them up as operands load, and takes them off at the end.
    The leaf has the first sum, in multiplies of 9 x 9 bits. ``depth`` is even, and an odd K is
    padded with a zero in both operands. All is modulo 2^32, where it is exact.

    Source: S. Winograd, A New Algorithm for Inner Product, IEEE Trans. Computers C-17 (1968); T.
    Pogue and N. Nicolici, Fast Inner-Product Algorithms and Architectures for Deep Neural Network
    Accelerators, IEEE Trans. Computers (2024).
    """

    LATENCY = 2
    CORRECTED = True

    def product(self):
        terms = [
            (self.a[d] + self.b[d + 1]) * (self.a[d + 1] + self.b[d])
            for d in range(0, self.depth, 2)
        ]
        return sum(terms[1:], terms[0])
