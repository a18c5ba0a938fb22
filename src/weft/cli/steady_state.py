"""Steady-state interval of products, by the cycle model and in simulation."""

from weft.config import Config

__all__ = [
    "SIZES", "ResultMismatch", "equal_products", "measure_interval", "predict_interval",
    "simulate_interval",
]

SIZES = 128, 256  # M = K = N of the products; the better one counts
# Numbers of products in a batch; the warm-up loads the data that stays resident.
WARM_UP, EARLY, LATE = 2, 2, 4


class ResultMismatch(Exception):
    """The hardware's results or cycles differ from the golden model or the cycle model."""


def equal_products(accelerator, a, b, expected, **arguments) -> tuple[float, bool]:
    """Cycles from one product to the next, for equal products back to back; loading is included.

    ``arguments`` are further arguments of `weft.Accelerator.matmul`. Also returns whether each
    result equals ``expected``, bit for bit.
    """
    import numpy as np

    equal = True

    def cycles(copies):
        nonlocal equal
        c, record = accelerator.matmul(
            np.stack([a] * copies), np.stack([b] * copies), record=True, **arguments
        )
        equal &= c.dtype == expected.dtype
        equal &= all(result.tobytes() == expected.tobytes() for result in c)
        return record.cycles

    cycles(WARM_UP)
    return (cycles(LATE) - cycles(EARLY)) / (LATE - EARLY), equal


def measure_interval(accelerator, size: int) -> float:
    """Cycles from one product to the next, for equal products with M = K = N = ``size``.

    Loading of the operands is included. Operands of an int8 core are int8; if the core can
    requantize, the results are int8 too, with a bias per column and one scale, which are loaded
    once. Operands and results of a bf16 core are bfloat16.

    Raises ResultMismatch if a result differs from the golden model.
    """
    config = accelerator.config
    product = _bf16_product if config.dtype == "bf16" else _int8_product
    interval, equal = equal_products(accelerator, **product(config, size))
    if not equal:
        raise ResultMismatch(f"results of {config.name} differ from golden")
    return interval


def _int8_product(config, size):
    """Arguments of `equal_products`."""
    import numpy as np

    from weft.golden import add_bias, matmul, requantize

    random = np.random.default_rng(size)
    a, b = (random.integers(-128, 128, (size, size), dtype=np.int8) for _ in range(2))
    mode = config.requantize
    bias = random.integers(-9999, 9999, size, dtype=np.int32)
    expected = matmul(a, b)
    if mode == "none":
        return {"a": a, "b": b, "expected": expected}
    scaling = {"multiplier": 3 << 29, "shift": -9, "zero_point": -3}
    if mode == "onnx":
        scaling = {"scale": np.float32(0.001), "zero_point": -3}
    expected = requantize(add_bias(expected, bias), mode=mode, **scaling)
    return {"a": a, "b": b, "expected": expected, "bias": bias, **scaling}


def _bf16_product(config, size):
    """Arguments of `equal_products`."""
    import numpy as np
    from ml_dtypes import bfloat16

    from weft.golden import matmul_bf16, to_bfloat16

    random = np.random.default_rng(size)
    a, b = (random.standard_normal((size, size)).astype(bfloat16) for _ in range(2))
    sums = matmul_bf16(a, b, flush_subnormals=config.flush_subnormals)
    return {"a": a, "b": b, "expected": to_bfloat16(sums), "out_dtype": bfloat16}


def predict_interval(config: Config) -> tuple[int, float]:
    """(size, interval) by the cycle model, for the size of `SIZES` with the better utilization."""
    from weft.host import Accelerator, GoldenTransport

    with Accelerator(GoldenTransport(config), config) as accelerator:
        intervals = [(size, measure_interval(accelerator, size)) for size in SIZES]
    return min(intervals, key=lambda pair: pair[1] / pair[0] ** 3)


def simulate_interval(config: Config, size: int, say=lambda text: None) -> float:
    """The interval of products of ``size``, counted by the simulated hardware."""
    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    with Accelerator(SimTransport(config, say=say), config) as accelerator:
        return measure_interval(accelerator, size)
