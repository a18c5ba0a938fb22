"""Runs benches through cocotb's runner, in a process of its own that can be killed.

    python -m weft.sim.simulation JSON

The JSON names a simulator of cocotb's runner and the arguments of the runner's ``test``.
"""

import json
import sys

__all__ = ["main"]


def main(argument: str):
    """Do what ``argument`` asks; an exception or the exit status tells how it went."""
    from cocotb_tools.runner import get_runner

    order = json.loads(argument)
    get_runner(order["simulator"]).test(**order["arguments"])


if __name__ == "__main__":
    main(sys.argv[1])
