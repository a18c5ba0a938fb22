"""The error tracker: which job a read error marks."""

from verif.amaranth_bench import play
from weft.hw.dma.engine import DELAY, ErrorTracker

INPUTS = "read_error", "load_done", "job_taken", "no_job"


def marks(*script):
    """``next_error``, ``latest_error`` and ``hold_jobs`` after each step."""
    script = [dict.fromkeys(INPUTS, 0) | step for step in script]
    outputs = play(ErrorTracker(), script, "next_error", "latest_error", "hold_jobs", tail=1)
    return list(zip(*(samples[1:] for samples in outputs), strict=True))


def test_an_error_before_a_job_marks_the_next_one():
    found = marks(
        {"read_error": 1, "feeds_latest": 0}, {}, {"no_job": 1}, {"job_taken": 1}, {}
    )
    assert found == [(1, 0, 0), (1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)]


def test_an_error_in_a_feed_marks_the_latest_job_and_holds_the_next():
    found = marks(
        {"read_error": 1, "feeds_latest": 1}, {}, {"job_taken": 1}, {"no_job": 1}, {"no_job": 1}
    )
    assert found == [(0, 1, 1), (0, 1, 1), (0, 1, 1), (0, 0, 0), (0, 0, 0)]


def test_an_error_wins_over_a_clear_in_the_same_cycle():
    found = marks({"read_error": 1, "feeds_latest": 1, "no_job": 1}, {"no_job": 1})
    assert found == [(0, 1, 1), (0, 0, 0)]
    found = marks({"read_error": 1, "feeds_latest": 0, "job_taken": 1}, {})
    assert found == [(1, 0, 0), (1, 0, 0)]


def test_holds_jobs_until_the_errors_of_a_load_are_known():
    script = [{"load_done": 1}, *[{}] * DELAY, {}]
    _, _, hold_jobs = zip(*marks(*script), strict=True)
    assert hold_jobs == (*[1] * DELAY, 0, 0)
