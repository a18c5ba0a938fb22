"""The states of a network core, as DONE and NET_STATUS report them."""

from enum import IntEnum

__all__ = ["NetworkState"]


class NetworkState(IntEnum):
    """What the core does, or how its last list ended."""

    IDLE = 0  # no list since the reset
    RUNNING = 1
    DONE = 2
    ABORTED = 3
    ERROR = 4
