"""The checks of ``weft selftest``: operands, and the expected results by the golden model."""

import numpy as np

from weft.commands import JobFlag, epilogue_flags
from weft.config import PAGE_WORDS
from weft.dtypes import DTYPES
from weft.geometry import operands

__all__ = ["CASES", "OperandCases", "memories", "products"]

_PATTERNS = {"00": 0x00, "7f": 0x7F, "55": 0x55, "aa": 0xAA}  # value of each byte of a buffer
_DEEP = 2.5  # K relative to the K that a buffer holds, so that the driver splits K
_MAX_SIZE = 1 << 16  # of M, K and N, to limit the run time


def memories(config, seed):
    """Checks of the operand buffers: [(name, check(accelerator) -> (details, failure))]."""
    cases = CASES[config.dtype](config, seed)
    return [(f"{side.upper()} buffer", _memory(cases, side)) for side in ("a", "b")]


def products(config, seed):
    """Checks of products of every class of shape, in the same form as `memories`."""
    cases = CASES[config.dtype](config, seed)
    a, b = operands(config)
    rows, cols, depth = config.rows, config.cols, config.depth
    shapes = {
        "1 x 1 x 1": (1, 1, 1),
        "K of 1": (rows, 1, cols),
        "one tile": (rows, 4 * depth, cols),
        "ragged edges": (2 * rows + 1, 3 * depth + 1, cols + 1),
        "larger than the array": (3 * rows, 7 * depth, 3 * cols),
        "more K than a buffer holds": (rows, int(_DEEP * min(a.words, b.words) * depth), cols),
        "more rows than A holds": (rows * a.pages + 1, depth, 1),
    }
    yield from (
        (name, cases.product(*shape))
        for name, shape in shapes.items() if max(shape) < _MAX_SIZE
    )
    yield "extremes", cases.extremes(2 * rows, 3 * depth + 1, 2 * cols)
    yield "resident B", cases.resident(rows + 1, 3 * depth, cols + 1)
    yield "back to back", cases.batch(6, rows + 1, 2 * depth + 1, cols)
    if epilogue_flags(config):
        yield "finished on the chip", cases.finished(rows + 1, 3 * depth, cols + 1)


def _memory(cases, side):
    """Tests each value of each page of a buffer, with every pattern and with noise.

    One operand fills the buffer, with one page per panel. The other operand is the identity, so
    each result of the product is one value of the buffer.
    """
    geometry = operands(cases.config)[side == "b"]
    k, vectors = PAGE_WORDS * geometry.depth, geometry.pages * geometry.edge

    def check(accelerator):
        fills = {name: cases.filled(value, vectors, k) for name, value in _PATTERNS.items()}
        for name, values in (fills | {"noise": cases.noise(vectors, k)}).items():
            stored = values if side == "a" else np.ascontiguousarray(values.T)
            unit = np.eye(k).astype(stored.dtype)
            with accelerator.load(stored, side) as loaded:
                result = accelerator.matmul(*((loaded, unit) if side == "a" else (unit, loaded)))
            expected = cases.golden(*((stored, unit) if side == "a" else (unit, stored)))
            if failure := _difference(result, expected):
                return "", f"{name}: {failure}"
        return f"{geometry.pages} pages, each value: {', '.join(fills)}, noise", None
    return check


def _difference(result, expected):
    """How two arrays differ, bit for bit, as text; None if they are equal."""
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return (
            f"results are {result.dtype} of shape {result.shape}, expected {expected.dtype} of"
            f" shape {expected.shape}"
        )
    bits = [x.view(f"u{x.itemsize}") for x in (result, expected)]
    wrong = np.argwhere(bits[0] != bits[1])
    if not len(wrong):
        return None
    index = tuple(int(n) for n in wrong[0])
    values = f"{result[index]}, expected {expected[index]}"
    return f"{len(wrong)} of {expected.size} results differ, the first at {index}: {values}"


class OperandCases:
    """Random operands of a data type, and checks of their products.

    A subclass has the type DTYPE and two values EXTREMES of the operands, and the methods `noise`,
    `filled`, `golden` and `finish`.
    """

    def __init__(self, config, seed):
        self.config = config
        self.random = np.random.default_rng(seed)

    def product(self, m, k, n):
        return self._compared(self.noise(m, k), self.noise(k, n))

    def batch(self, count, m, k, n):
        return self._compared(self.noise(count, m, k), self.noise(count, k, n))

    def extremes(self, m, k, n):
        a = self.random.choice(np.array(self.EXTREMES, self.DTYPE), (m, k))
        return self._compared(a, np.full((k, n), self.EXTREMES[0], self.DTYPE))

    def resident(self, m, k, n):
        b, a_operands = self.noise(k, n), [self.noise(m, k) for _ in range(3)]

        def check(accelerator):
            with accelerator.load(b) as weights:
                for a in a_operands:
                    failure = _difference(accelerator.matmul(a, weights), self.golden(a, b))
                    if failure:
                        return "", failure
            return f"{len(a_operands)} of {m} x {k} x {n}", None
        return check

    def finished(self, m, k, n):
        a, b = self.noise(m, k), self.noise(k, n)
        arguments, expected = self.finish(a, b)
        return self._compared(a, b, expected, **arguments)

    def _compared(self, a, b, expected=None, **arguments):
        def check(accelerator):
            golden = self.golden(a, b) if expected is None else expected
            failure = _difference(accelerator.matmul(a, b, **arguments), golden)
            return " x ".join(map(str, (*a.shape, b.shape[-1]))), failure
        return check


class _Int8Cases(OperandCases):
    DTYPE, EXTREMES = np.int8, (-128, 127)

    def noise(self, *shape):
        return self.random.integers(-128, 128, shape, dtype=np.int8)

    def filled(self, value, *shape):
        return np.full(shape, value, np.uint8).view(np.int8)

    def golden(self, a, b):
        from weft.golden import matmul

        return matmul(a, b)

    def finish(self, a, b):
        """(arguments of ``matmul`` that let the core finish the results, expected results)."""
        from weft.golden import add_bias, requantize

        n, mode = b.shape[-1], self.config.requantize
        bias = self.random.integers(-1000, 1000, n, dtype=np.int32)
        if mode == "onnx":
            scaling = {"scale": self.random.uniform(1e-3, 1e-2, n).astype(np.float32)}
        else:
            multiplier = self.random.integers(1 << 30, 1 << 31, n, dtype=np.int64)
            scaling = {"multiplier": multiplier.astype(np.int32), "shift": np.full(n, -8, np.int32)}
        arguments = {**scaling, "zero_point": 3, "low": -100}
        expected = requantize(add_bias(self.golden(a, b), bias), mode=mode, **arguments)
        return {**arguments, "bias": bias}, expected


class _Bf16Cases(OperandCases):
    @property
    def DTYPE(self):
        from ml_dtypes import bfloat16

        return bfloat16

    EXTREMES = (-3.3895314e38, 1e-38, 3.3895314e38, 0.0)

    def noise(self, *shape):
        """Random finite numbers with all exponents for which products stay finite."""
        bits = self.random.integers(0, 1 << 16, shape, dtype=np.uint16)
        return (bits & 0xBFFF).view(self.DTYPE)

    def filled(self, value, *shape):
        return np.full(shape, value << 8 | value, np.uint16).view(self.DTYPE)

    def golden(self, a, b):
        from weft.golden import matmul_bf16

        return matmul_bf16(a, b, flush_subnormals=self.config.flush_subnormals)

    def finish(self, a, b):
        from weft.golden import clamp, to_bfloat16

        sums = self.golden(a, b)
        if JobFlag.CLAMP not in epilogue_flags(self.config):
            return {"out_dtype": self.DTYPE}, to_bfloat16(sums)
        y = to_bfloat16(clamp(sums, low=np.float32(0)))
        return {"low": 0.0, "out_dtype": self.DTYPE}, y


# Subclasses of `OperandCases`, by the name of the data type.
CASES = DTYPES.layer("checks", int8=_Int8Cases, bf16=_Bf16Cases)
