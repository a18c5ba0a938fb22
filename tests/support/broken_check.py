"""Runs a case on wrong hardware: bit 0 of the results is inverted."""

import sys

from broken_verilog import with_output

from weft.regress import check
from weft.sim import build

if __name__ == "__main__":
    correct = build.verilog
    build.verilog = lambda config: with_output(
        correct(config), "weft", "res_data", "{} ^ 1"
    )
    sys.exit(check.main())
