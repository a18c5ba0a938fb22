"""The record of SDRAM controllers: a row, a design and rates of each, within the limits."""

import pytest
from tooling import load

from weft.sdram import SDRAM_CHIPS


@pytest.fixture(scope="module")
def sdram():
    return load("sdram")


def test_the_record_has_all_controllers(sdram):
    record = sdram.results.load("sdram")
    names = [sdram.title(*row) for row in sdram.CONTROLLERS]
    for table in record["tables"]:
        assert [row[0] for row in table["rows"]] == names
    assert list(record["designs"]) == names == [name for name, _ in sdram.designs()]


def test_recorded_controllers_are_within_their_limits(sdram):
    area, rates = sdram.results.load("sdram")["tables"]
    for (name, mhz, _), cells, speeds in zip(
        sdram.CONTROLLERS, area["rows"], rates["rows"], strict=True
    ):
        chip = SDRAM_CHIPS[name]
        assert cells[1] <= sdram.MOST_LUT4 and cells[4] <= sdram.MOST_FF
        assert cells[7] >= sdram.LEAST_MHZ
        linear, formula = speeds[1:3]
        assert linear == pytest.approx(formula, rel=0.003) and linear > 0.95 * mhz * chip.width / 8


def test_a_design_has_its_digest(sdram):
    _, found = next(sdram.designs())
    assert set(found()) == {"design", "conditions"}
