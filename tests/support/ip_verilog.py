"""The Verilog of IP cores, each exported once."""

import functools

from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.ip import Ip

__all__ = ["ip_verilog"]


@functools.cache
def ip_verilog(ip: Ip) -> str:
    """The Verilog of an IP core, as module ``ip.name``."""
    return to_verilog(IpTop(ip), name=ip.name)
