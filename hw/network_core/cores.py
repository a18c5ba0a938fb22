"""Which core executes the lists of a `weft.network_core.config.NetworkCoreConfig`."""

from weft.hw.network_core.core import NetworkCore
from weft.hw.network_core.micro.core import MicroCore
from weft.network_core.config import has_single_port

__all__ = ["network_core"]


def network_core(config):
    """Return the core of ``config``: with a microprogram if its memory has one port."""
    return (MicroCore if has_single_port(config.array) else NetworkCore)(config)
