"""Weft: matrix-multiply accelerators for FPGAs, from one `Config` to a ``matmul`` on the host."""

from weft.config import Config, ConfigError

__all__ = ["Accelerator", "Config", "ConfigError"]


def __getattr__(name):
    # On first use: the driver needs numpy, a Config only the standard library.
    if name == "Accelerator":
        from weft.host.accelerator import Accelerator

        return Accelerator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
