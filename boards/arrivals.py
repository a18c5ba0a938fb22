"""The latest arrival of a signal at each block of a routed design: what limits its clock next."""

from collections.abc import Mapping
from typing import Any

from weft.boards.blocks import block_of

__all__ = ["latest_arrivals"]


def latest_arrivals(report: Mapping[str, Any]) -> dict[str, float]:
    """Nanoseconds from a clock edge to the latest arrival at a register, by the register's block.

    The blocks have the names of `weft.boards.blocks.GROUPS`; the latest one comes first. Paths
    between two clocks do not count. An arrival contains the delay of the clock's network to the
    register that the path starts at, but not the setup time of the register at its end.

    Parameters
    ----------
    report : dict
        A report of nextpnr, with ``--detailed-timing-report``.
    """
    latest: dict[str, float] = {}
    for net in report["detailed_net_timings"]:
        for endpoint in net["endpoints"]:
            if endpoint["event"] == net["event"]:
                block, delay = block_of(endpoint["cell"]), max(endpoint["delay"])
                latest[block] = max(delay, latest.get(block, 0.0))
    return dict(sorted(latest.items(), key=lambda item: -item[1]))
