"""What the tests of regressions share: cases of few rows, and the stand-in of the checks."""

import sys
from pathlib import Path

from weft.config import Config
from weft.regress.case import Case
from weft.regress.check import CaseWork
from weft.tasks.program import RunLimits

FAKE = sys.executable, str(Path(__file__).with_name("fake_check.py"))


def case(rows=2, seed=1, check="icarus"):
    """A case of a Config with these rows."""
    return Case(Config(rows=rows, cols=2), f"7.{rows}", check, seed)


def work(*arguments, **limits):
    """CaseWork of the stand-in, which needs no simulator."""
    return CaseWork((), RunLimits(**limits), (*FAKE, *map(str, arguments)))
