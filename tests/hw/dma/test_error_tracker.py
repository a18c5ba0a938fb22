"""Beats that were read with an error, and the jobs that they mark."""

from weft.hw.dma.error_tracker import DELAY, ErrorTracker
from weft.sim.amaranth_bench import play


def marks(*script):
    """The marks of the next and of the latest job, after each step."""
    script = [dict.fromkeys(("spoilt", "final", "takes", "rests"), 0) | one for one in script]
    following, latest, holds = play(ErrorTracker(), script, "next", "latest", "holds", tail=1)
    return list(zip(following[1:], latest[1:], holds[1:], strict=True))


def test_a_load_before_a_job_marks_the_next_one():
    found = marks({"spoilt": 1, "fed": 0}, {}, {"rests": 1}, {"takes": 1}, {})
    assert found == [(1, 0, 0), (1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)]


def test_what_a_job_is_fed_marks_it_and_holds_the_next():
    found = marks({"spoilt": 1, "fed": 1}, {}, {"takes": 1}, {"rests": 1}, {"rests": 1})
    assert found == [(0, 1, 1), (0, 1, 1), (0, 1, 1), (0, 0, 0), (0, 0, 0)]


def test_an_error_as_the_scatter_rests_is_not_lost():
    assert marks({"spoilt": 1, "fed": 1, "rests": 1}, {"rests": 1}) == [(0, 1, 1), (0, 0, 0)]
    assert marks({"spoilt": 1, "fed": 0, "takes": 1}, {}) == [(1, 0, 0), (1, 0, 0)]


def test_no_job_goes_out_until_a_load_is_known_to_be_right():
    script = [{"final": 1}, *[{}] * DELAY, {}]
    _, _, holds = zip(*marks(*script), strict=True)
    assert holds == (*[1] * DELAY, 0, 0)
