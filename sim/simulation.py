"""Runs benches with cocotb's runner in a separate process, which can be killed.

    python -m weft.sim.simulation JSON

The JSON has a simulator of cocotb's runner and the arguments of the runner's ``test``.
"""

import json
import sys

__all__ = ["main"]


def main(argument: str):
    """Run the benches that ``argument`` describes; raises or exits with an error on failure."""
    from cocotb_tools.runner import get_runner

    request = json.loads(argument)
    get_runner(request["simulator"]).test(**request["arguments"])


if __name__ == "__main__":
    main(sys.argv[1])
