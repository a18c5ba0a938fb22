"""Weft: a generator of matrix-multiply accelerators for FPGAs, and the driver for the host."""

from weft.config import Config, ConfigError

__all__ = ["Accelerator", "Config", "ConfigError", "Parallel", "load"]


def __getattr__(name):
    # Imported at first use: the driver needs numpy, a Config only the standard library.
    if name == "Accelerator":
        from weft.host.accelerator import Accelerator

        return Accelerator
    if name == "Parallel":
        from weft.host.parallel import Parallel

        return Parallel
    if name == "load":
        from weft.models.loading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
