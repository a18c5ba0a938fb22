"""Networks with operators of two operands: sums, products, maxima."""

from dataclasses import replace

import numpy as np
from lowered_operators import OperatorNetwork
from products import integers

from weft.quantize import quantize_multiplier

__all__ = ["Operands"]


def _pairs(*scales):
    """Multipliers and shifts of scales."""
    found = [tuple(map(int, quantize_multiplier(scale))) for scale in scales]
    return tuple(m for m, _ in found), tuple(s for _, s in found)


class Operands(OperatorNetwork):
    """A network with operators of two operands, whose scales are at random."""

    def values(self, *shape):
        """A constant at random."""
        return self.constant(integers(self.rng, self.dtype, *shape), zero=self._zero())

    def _of(self, name, kernel, a, b, **attributes):
        shape = np.broadcast_shapes(self.tensors[a].shape, self.tensors[b].shape)
        y = self.operator(name, kernel, (a, b), shape, zero=attributes.get("zero"))
        self.nodes[-1] = replace(self.nodes[-1], attributes=attributes)
        return y

    def limits(self):
        """Zero point and limits of a result."""
        return {"zero": self._zero(), "low": self.half - 120, "high": self.half + 125}

    def total(self, a, b, kernel="tflite.add"):
        """ADD or SUB."""
        first, second, y = self.rng.uniform(0.02, 0.1, 3)
        twice = 2 * max(first, second)
        multipliers, shifts = _pairs(first / twice, second / twice, twice / y / (1 << 20))
        given = {"zeros": (self.zero_of(a), self.zero_of(b)), **self.limits()}
        if kernel == "litert.add":
            given |= {"multipliers": (round(2**20 * first / y), -round(2**19 * second / y)),
                      "shift": 20}
        else:
            given |= {
                "multipliers": multipliers[:2], "shifts": shifts[:2], "left_shift": 20,
                "multiplier": multipliers[2], "shift": shifts[2],
            }
        return self._of("ADD", kernel, a, b, **given)

    def product(self, a, b, kernel="tflite.mul"):
        """MUL."""
        scale = self.rng.uniform(0.002, 0.05)
        given = {"zeros": (self.zero_of(a), self.zero_of(b)), **self.limits()}
        if kernel == "litert.mul":
            given["scale"] = float(np.float32(scale))
        else:
            [given["multiplier"]], [given["shift"]] = _pairs(scale)
        return self._of("MUL", kernel, a, b, **given)

    def squared_difference(self, a, b):
        """SQUARED_DIFFERENCE; the largest results saturate, or none does."""
        first, second = self.rng.uniform(0.02, 0.1, 2)
        twice, largest = 2 * max(first, second), 255 * max(first, second)
        y = largest**2 / self.rng.uniform(100, 2000)
        multipliers, shifts = _pairs(first / twice, second / twice, twice * twice / (1 << 14) / y)
        limits = {"low": self.half - 128, "high": self.half + 127}
        return self._of(
            "SQUARED_DIFFERENCE", "tflite.squared_difference", a, b,
            zeros=(self.zero_of(a), self.zero_of(b)), zero=self.half - 128, **limits,
            multipliers=multipliers[:2], shifts=shifts[:2], left_shift=7,
            multiplier=multipliers[2], shift=shifts[2],
        )

    def prelu(self, x, slope):
        """PRELU."""
        multipliers, shifts = _pairs(*self.rng.uniform((0.5, 0.002), (2, 0.02)))
        return self._of(
            "PRELU", "tflite.prelu", x, slope, zeros=(self.zero_of(x), self.zero_of(slope)),
            multipliers=multipliers, shifts=shifts, zero=self._zero(),
        )

    def extreme(self, a, b, kernel):
        """MAXIMUM or MINIMUM."""
        return self._of(kernel.upper(), kernel, a, b)

    def apply(self, kernel, a, b):
        """An operator by its kernel."""
        if kernel in ("maximum", "minimum"):
            return self.extreme(a, b, kernel)
        if kernel == "tflite.prelu":
            return self.prelu(a, b)
        if kernel == "tflite.squared_difference":
            return self.squared_difference(a, b)
        return (self.product if kernel.endswith("mul") else self.total)(a, b, kernel)
