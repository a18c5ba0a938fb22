"""The cocotb benches of the core: stream drivers, a scoreboard, and the tests.

`weft.sim.runner` runs them. They read the Config as JSON from the environment variable
``WEFT_CONFIG``, and use cocotb's random seed.
"""

__all__ = ["MODULES", "PERIOD_NS"]

MODULES = tuple(
    f"weft.sim.bench.{name}" for name in (
        "products", "ordering", "epilogue", "faults", "registers", "floats", "aborts",
    )
)
PERIOD_NS = 10  # clock period
