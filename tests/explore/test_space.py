"""The space: what it draws is legal, of the asked size, and different."""

import dataclasses
import itertools

import numpy as np
import pytest

from weft.boards.devices import DEVICES
from weft.config import Config
from weft.explore.space import AXES, draws, neighbours

BASES = {
    "LFE5U-25F": Config(target="ecp5", activation="none"),
    "iCE40UP5K": Config(target="ice40up", activation="none", rows=2, cols=2),
    "iCE40HX8K": Config(target="ice40hx", activation="none", rows=2, cols=2),
}


@pytest.mark.parametrize("name", BASES)
def test_draws_are_of_the_space(name):
    device, base = DEVICES[name], BASES[name]
    axes = AXES[device.target]
    drawn = list(itertools.islice(
        draws(device, base, np.random.default_rng(1), peak=(2, 16)), 60
    ))
    for config in drawn:
        assert 2 <= config.peak <= 16
        assert config.activation == "none" and config.target == device.target
        for field, values in axes.items():
            allowed = {*values, config.cols} if field == "dsp_cols" else set(values)
            assert getattr(config, field) in allowed
    assert len(set(drawn)) > 40


def test_draws_follow_their_seed():
    one, two, other = (
        list(itertools.islice(draws(
            DEVICES["LFE5U-25F"], BASES["LFE5U-25F"], np.random.default_rng(seed), peak=(1, 64)
        ), 5)) for seed in (1, 1, 2)
    )
    assert one == two != other


def test_neighbours_differ_by_a_step():
    config = Config(target="ecp5", rows=4, cols=4, depth=4, activation="none", dsp_cols=1,
                    a_words=512, b_words=512, lanes=2, jobs=4)
    near = list(neighbours(config, DEVICES["LFE5U-25F"]))
    for other in near:
        different = [
            field.name for field in dataclasses.fields(Config)
            if getattr(config, field.name) != getattr(other, field.name)
        ]
        assert len(different) == 1 or different == ["cols", "dsp_cols"]
    assert {other.rows for other in near} == {3, 4, 5}
    assert {other.drain for other in near} == {"overlapped", "folded"}
    assert {other.multiplier for other in near} == {"fip", "plain"}
