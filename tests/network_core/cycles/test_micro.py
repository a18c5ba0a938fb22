"""The cycle model of a core that a microprogram controls: lists computed by hand, wrong lists."""

from dataclasses import replace
from itertools import pairwise

import pytest
from network_cores import MICRO

from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, ListLoop, LoadTarget, split

LIST, LOG = split(5, 1), split(100, 1)
JOB = ListJob(
    panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1, kernel_height=1,
    kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1,
)


def predict(*descriptors, **limits):
    return predict_list(MICRO, [*descriptors, ListEnd()], LIST, LOG, **limits)


def test_a_load_by_hand():
    """A vector takes a cycle; with ``fill`` it is not read, and takes as many."""
    def load(words, **fields):
        prediction = predict(ListLoad(words=words, target=LoadTarget.B, **fields))
        (start, end), = prediction.loads
        return end - start, prediction.cycles

    assert load(1)[0] == 4
    assert load(3)[0] == 4 * 3
    assert load(3, diagonal=1)[0] == 3
    assert load(3)[1] - load(2)[1] == 4
    filled = ListLoad(words=5, fill=1, target=LoadTarget.PARAMETERS)
    assert [end - start for start, end in predict(filled).loads] == [3 * 5]


def test_a_job_by_hand():
    """A pixel with one column, and a step.

    From the start of the job, in cycle 0, the log takes 6 cycles, and the tile starts in cycle 30.
    Its step is in 31, and its sum is held from 39 on. The slots begin in 1, 5, 9, ..., so the
    column is requested in 41. Its result follows after 24 cycles; it is stored 2 cycles later, and
    after 3 more the log reads the cycle.
    """
    (start, end), = predict(JOB).jobs
    assert predict(JOB).computed == (start + 31,)
    assert end - start == 41 + 24 + 2 + 3


def test_long_tiles_reach_the_peak():
    words, tiles = 400, 8
    long = replace(JOB, columns=4 * tiles, tile_words=words, tap_vectors=words, group_tiles=tiles)
    (start, end), = predict(long).jobs
    rate = 4 * 4 * words * tiles / (end - start)
    assert 0.97 * MICRO.peak < rate < MICRO.peak


def test_loops_repeat_their_bodies():
    """Each turn waits for its own load, so all turns take as long."""
    load, job = ListLoad(words=1, target=LoadTarget.B), replace(JOB, loads=1)
    loop = ListLoop(times=4, body=2, body_loads=1, body_jobs=1)
    prediction = predict(load, job, loop)
    assert len(prediction.jobs) == len(prediction.loads) == 4
    starts = [start for start, _ in prediction.jobs]
    assert len({after - before for before, after in pairwise(starts)}) == 1


@pytest.mark.parametrize("wrong", [
    replace(JOB, loads=1), ListLoad(words=1, target=LoadTarget.B, jobs=1),
], ids=["job", "load"])
def test_a_deadlock_is_refused(wrong):
    with pytest.raises(ValueError, match="loads and jobs of a list must not wait"):
        predict(wrong)


@pytest.mark.parametrize("wrong, error", [
    (replace(JOB, columns=0), "FIELD"),
    (ListLoad(words=MICRO.b_words + 1, target=LoadTarget.B), "FIELD"),
    (ListLoad(words=1, target=LoadTarget.B, source=split(MICRO.words, 1)), "ADDRESS"),
])
def test_a_wrong_list_is_refused(wrong, error):
    with pytest.raises(ValueError, match=f"a list must have no error, not {error}"):
        predict(wrong)


def test_a_limit():
    with pytest.raises(ValueError, match="a list must end in 10 cycles"):
        predict(limit=10)
