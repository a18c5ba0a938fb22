"""The record of cycles agrees with the cycle model."""

from tools import cycles, results


def test_the_record_is_up_to_date():
    assert cycles.tables() == results.load("cycles")["tables"], "stale; type: make cycles"
