"""The cocotb benches of the core: drivers and checks of its streams, and the tests that use them.

`weft.sim.runner` runs them. From the environment they take ``WEFT_CONFIG``, the Config as JSON;
their seed is cocotb's.
"""

__all__ = ["MODULES", "PERIOD_NS"]

MODULES = tuple(
    f"weft.sim.bench.{name}" for name in (
        "products", "order", "finish", "faults", "registers", "floats", "starts", "limits",
        "aborts",
    )
)
PERIOD_NS = 10  # of the clock
