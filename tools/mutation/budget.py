"""A pytest plugin: skips the rest of the tests after so many processor seconds (WEFT_BUDGET)."""

import os
import resource

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    if sum(one.ru_utime + one.ru_stime for one in used) > float(os.environ["WEFT_BUDGET"]):
        pytest.skip("the budget is spent")
