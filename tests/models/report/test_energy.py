"""`energy` against sums by hand of Horowitz's energies."""

import pytest

from weft.config import Config
from weft.models.report.energy import energy, energy_text
from weft.models.report.interface import Ceilings
from weft.models.report.streams import LayerStreams

MOVED = LayerStreams(a=100, b=200, parameters=300)


def test_energy_by_hand():
    config = Config(rows=2, cols=4, depth=8, a_words=512, b_words=2048)
    able = Ceilings(64, 16, 4, 8 << 10, 64 << 10)  # 10 and 100 pJ for 8 bytes
    found = energy(config, able, MOVED, macs=1000, active=50, results=40)
    assert found.mac == pytest.approx(1000 * 0.3 / 1e3)
    a, b = 100 + 50 * 2 * 8, 200 + 300 + 50 * 4 * 8
    assert found.operands == pytest.approx((a * 10 / 8 + b * 100 / 8) / 1e3)
    assert found.results == pytest.approx(2 * 40 * 4 * 10 / 8 / 1e3)
    assert found.total == pytest.approx(found.mac + found.operands + found.results)


def test_bfloat16_counts_as_float16_with_a_float32_sum():
    config = Config(dtype="bf16")
    found = energy(config, Ceilings(16, 16, 4, 1, 1 << 30), LayerStreams(), 1000, 0, 0)
    assert found.mac == pytest.approx(2.0)
    assert found.operands == 0


def test_energy_has_a_unit_that_fits():
    texts = [energy_text(value) for value in (12.34, 5470.0, 2.5e7)]
    assert texts == ["12.3 nJ", "5.47 uJ", "25 mJ"]
