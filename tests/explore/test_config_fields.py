"""The fields of designs: their values, a line, and a TOML file that gives the design again."""

from pathlib import Path

import pytest
from explore_points import network_core

from weft.boards.catalog import BOARDS
from weft.config import Config
from weft.designs import design_from_toml, to_toml
from weft.explore.space import fields_of, line_of

DESIGNS = [
    *(board.config for board in BOARDS.values()),
    *(design.config for board in BOARDS.values() for design in board.networks.values()),
    network_core(rows=3, words=2048, b_words=528, lines=64, read_vectors=2),
]


@pytest.mark.parametrize("config", dict.fromkeys(DESIGNS), ids=lambda config: config.name)
def test_the_file_gives_the_design(tmp_path, config):
    path = Path(tmp_path / "design.toml")
    path.write_text(to_toml(config, chosen=True), encoding="utf-8")
    assert design_from_toml(path) == config


def test_a_core_for_networks_has_its_own_fields_and_those_of_its_array():
    made = network_core(rows=3, b_words=528, hop=4)
    fields = fields_of(made)
    assert (fields["rows"], fields["hop"], fields["b_words"]) == (3, 4, 528)
    assert made.array.b_words != 528
    assert "a_words" not in fields and "bytes_in" not in fields


def test_all_fields_of_a_config():
    config = Config(target="ecp5", rows=2)
    assert fields_of(config)["rows"] == 2 and "a_words" in fields_of(config)


def test_the_line_has_the_fields_that_are_not_in_the_name():
    assert line_of(Config(target="ecp5", rows=2, cols=2, jobs=2)) == "jobs=2"
    assert line_of(network_core(words=512)) == (
        "lanes=2 hop=2 dsp_cols=1 scale_cycles=1 words=512 b_words=512 lines=512 read_vectors=4"
    )
