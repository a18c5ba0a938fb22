"""The streaming wake word: untrained, in all bytes as TensorFlow Lite Micro."""

import numpy as np
import pytest

from tools import train_wake_word
from weft.models.loading import load


@pytest.fixture(scope="module")
def sounds():
    return train_wake_word.examples(2, 1)


@pytest.mark.parametrize("count", [6, pytest.param(1000, marks=pytest.mark.long)])
def test_a_step_is_one_list(sounds, count):
    bands = np.concatenate([bands for bands, _ in sounds])
    data = train_wake_word.network_file(train_wake_word.random_weights(1), bands[None])
    steps = train_wake_word.steps_of(data, np.tile(bands, (1 + count // 200, 1)))[:count]
    text = train_wake_word.compared(data, steps)
    assert text.startswith(f"{count} steps: one list each, all bytes equal TensorFlow Lite Micro;")
    cycles = int(text.partition(" jobs, ")[2].partition(" ")[0].replace(",", ""))
    assert 2000 < cycles < 110_000  # 1 ms
    graph = load(data, "wake_word").graph
    assert len(graph.states) == 5 and "CALL_ONCE" in graph.operators


def test_sounds_tell_when_to_hear_the_word(sounds):
    for bands, wanted in sounds:
        assert len(bands) == train_wake_word.FRAMES * len(wanted) and set(wanted) <= {-1, 0, 1}
        hear = np.flatnonzero(wanted == 1)
        assert len(hear) and (wanted[hear - 11] != 1).any()
