"""The cycle model of lists: skipped cycles, limits, a list computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_lists import random_list
from network_cores import PROGRAM, PROGRAM_ROW, ROW, network_core_config
from tiers import tiers

from weft.config import Config
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming, predict_list
from weft.network_core.cycles.model import _ListModel
from weft.network_core.cycles.output import PlainLayer
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, LoadTarget, split

CORE = Config(rows=4, cols=4, depth=4, lanes=2, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(array=CORE, words=2048, b_words=256, lines=64, read_vectors=4)  # 5 banks
LARGER = {
    "array": replace(CHIP, words=32768),
    "fast": network_core_config(4, 8, 4, 4, words=32768, read_vectors=4, scale_cycles=2),
    "row": replace(ROW, words=32768),
    "program": replace(PROGRAM_ROW, words=32768, program_words=32768),
}


@pytest.mark.parametrize("config", tiers(LARGER, "array"))
@pytest.mark.parametrize("add", [False, True], ids=["plain", "added"])
def test_skipped_cycles_change_nothing(monkeypatch, config, add):
    rng = np.random.default_rng(22)
    sizes = dict(layers=2, most_pixels=16, most_kernel=2, most_channels=8, add=add)
    cases = [random_list(rng, config, **sizes) for _ in range(4)]
    skips, steps, step = [], [], _ListModel.step
    for case in cases:
        place = case.descriptors, case.list_address, case.log_address
        with monkeypatch.context() as patch:
            patch.setattr(_ListModel, "skip", lambda model: skips.append(model.now))
            expected = predict_list(config, *place)
        with monkeypatch.context() as patch:
            patch.setattr(_ListModel, "step", lambda model: steps.append(model.now) or step(model))
            assert predict_list(config, *place) == expected
        assert len(expected.jobs) == case.jobs
    assert len(steps) < len(skips)  # without skipping, every cycle is computed


def test_an_empty_list_by_hand():
    """Both heads read the same END.

    The heads begin in cycle 1. The reader reads for the loads: 8 requests in cycles 3 to 10. The
    last vectors arrive in cycle 18, and the reader is done in 21. From 22 on it reads for the jobs,
    and is done in 42. Faults, check and result take 3 cycles: both heads have ended in 46. After 7
    cycles nothing can follow, and the cycle of the stop counts too.
    """
    prediction = predict_list(CHIP, [ListEnd()], split(0, 5), split(100, 5))
    assert prediction.jobs == ()
    assert prediction.cycles == 46 + 7 + 1


@pytest.mark.parametrize(("ahead", "least", "most"), [(True, 2, 5), (False, 64, 80)])
def test_beats_of_a_fraction_of_a_cycle(ahead, least, most):
    """A load of 64 beats of 4 cycles, and of 4 + 10/256: 2.5 cycles more in all.

    A memory that reads ahead adds up the fractions. Another one begins each beat with a cycle.
    Beats of descriptors come between those of the load.
    """
    load = ListLoad(target=LoadTarget.B, source=split(96, PROGRAM.banks), words=64)
    times = []
    for period in (1024, 1034):
        timing = ProgramTiming(14, period, ahead=ahead, bursts=3)
        found = predict_list(
            PROGRAM, [load, ListEnd()], 0, split(3000, PROGRAM.banks), timing=timing
        )
        (start, end), = found.loads
        times.append(end - start)
    assert least <= times[1] - times[0] <= most


def test_a_deadlock_is_refused():
    job = ListJob(
        loads=1, panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1,
    )
    for descriptors in ([job, ListEnd()], [ListLoad(jobs=1, words=1), ListEnd()]):
        with pytest.raises(ValueError, match="loads and jobs of a list must not wait"):
            predict_list(CHIP, descriptors, 0, 0)


def test_a_limit():
    with pytest.raises(ValueError, match="a list must end in 10 cycles"):
        predict_list(CHIP, [ListEnd()], 0, 0, limit=10)


@pytest.mark.parametrize("multiplier, cycles", [("plain", 59), ("fip", 60)])
def test_a_layer_of_one_step_on_an_ecp5(multiplier, cycles):
    """From the last store before the job's start to its own last store."""
    core = Config(
        rows=8, cols=8, depth=8, lanes=8, requantize="tflite", activation="none", target="ecp5",
        multiplier=multiplier,
    )
    job = ListJob(cross=1, panel_rows=8, out_height=1, out_width=8, columns=8, tile_words=1)
    assert PlainLayer(NetworkCoreConfig(array=core), job, 1).finish(1, None) == cycles
