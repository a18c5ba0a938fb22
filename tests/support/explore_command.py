"""Runs ``weft`` with a stand-in of the tools, which takes a second for place and route.

    python explore_command.py RECORDED ARGUMENT...
"""

import functools
import sys
from pathlib import Path

from explore_points import FAKE

from weft.boards.toolchain import Toolchain
from weft.cli import main
from weft.explore import candidates, findings, flow

if __name__ == "__main__":
    findings.FILE = Path(sys.argv[1])
    candidates.DRAWN, candidates.FINALISTS, candidates.ROUNDS = 40, 6, 1
    Toolchain.set_up = lambda self: None
    flow.PointSteps = functools.partial(flow.PointSteps, command=(*FAKE, "1"))
    sys.exit(main(sys.argv[2:]))
