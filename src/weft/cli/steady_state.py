"""The steady state of products with int8 results: as the cycle model has it, and as simulated."""

from weft.config import Config

__all__ = ["SIZES", "ResultMismatch", "measure_interval", "predict_interval", "simulate_interval"]

SIZES = 128, 256  # of the products, M = K = N: the better one counts
WARM, EARLY, LATE = 2, 2, 4  # copies: with the first ones, what stays on the chip gets there


class ResultMismatch(Exception):
    """The hardware did other than golden or the cycle model says."""


def measure_interval(accelerator, size: int) -> float:
    """Cycles from one of many equal products, ``size`` each way, to the next, loading included.

    They are of int8 and, where the core finishes results, give int8: scaled by a number a column,
    with bias. Both are loaded once.

    Raises Unequal where results are not those of the golden model.
    """
    import numpy as np

    from weft.golden import add_bias, matmul, requantize

    random = np.random.default_rng(size)
    a, b = (random.integers(-128, 128, (size, size), dtype=np.int8) for _ in range(2))
    mode = accelerator.config.requantize
    bias = random.integers(-9999, 9999, size, dtype=np.int32)
    given, wanted = {}, matmul(a, b)
    if mode != "none":
        finish = {"multiplier": 3 << 29, "shift": -9, "zero_point": -3}
        if mode == "onnx":
            finish = {"scale": np.float32(0.001), "zero_point": -3}
        given = {"bias": bias, **finish}
        wanted = requantize(add_bias(wanted, bias), mode=mode, **finish)

    def cycles(copies):
        c, record = accelerator.matmul(
            np.stack([a] * copies), np.stack([b] * copies), record=True, **given
        )
        if any(one.tobytes() != wanted.tobytes() for one in c):
            raise ResultMismatch(f"results of {accelerator.config.name} must equal golden's")
        return record.cycles

    cycles(WARM)
    return (cycles(LATE) - cycles(EARLY)) / (LATE - EARLY)


def predict_interval(config: Config) -> tuple[int, float]:
    """The size of `SIZES` with the better utilization, and its interval by the cycle model."""
    from weft.host import Accelerator, GoldenTransport

    with Accelerator(GoldenTransport(config), config) as accelerator:
        found = [(size, measure_interval(accelerator, size)) for size in SIZES]
    return min(found, key=lambda one: one[1] / one[0] ** 3)


def simulate_interval(config: Config, size: int, say=lambda text: None) -> float:
    """The interval of products of ``size``, counted by the hardware in simulation."""
    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    with Accelerator(SimTransport(config, say=say), config) as accelerator:
        return measure_interval(accelerator, size)
