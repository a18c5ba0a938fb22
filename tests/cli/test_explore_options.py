"""What the commands of explorations share."""

import subprocess
import sys

from weft.cli.explore_result import Left
from weft.tasks.store import Claimant


def test_counts_the_points_that_perhaps_nobody_runs():
    said = []
    left = Left(said.append)
    left("a", Claimant.here())
    assert left.lost == 0
    left("b", Claimant("far", 7, "now"))
    assert left.lost == 1
    assert said[1] == "b: left to process 7 of far, which may have ended"


def test_estimates_need_no_engine():
    """`weft estimate` works without distributed."""
    code = (
        "import sys; sys.modules['distributed'] = sys.modules['psutil'] = None;"
        "from weft.cli import main; main(['estimate', '--board', 'ulx3s-25f', '--workload',"
        " '8x8x8'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
