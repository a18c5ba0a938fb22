"""One step of a simulation, to build or to run, in a process of its own that can be killed.

    python -m weft.sim.simulation JSON

The JSON names a simulator of cocotb's runner, one of the runner's methods, and its arguments.
"""

import json
import sys

__all__ = ["main"]


def main(argument: str):
    """Do what ``argument`` asks; an exception or the exit status tells how it went."""
    from cocotb_tools.runner import get_runner

    order = json.loads(argument)
    runner = get_runner(order["simulator"])
    if order["method"] == "build":
        runner.build(**order["arguments"])
    else:
        runner.test(**order["arguments"])


if __name__ == "__main__":
    main(sys.argv[1])
