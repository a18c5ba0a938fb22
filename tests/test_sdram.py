"""SDRAM chips: cycles from nanoseconds, limits, and the rate of a stream."""

from dataclasses import replace

import pytest
from rejects import rejects

from weft.sdram import SDRAM_CHIPS, SdramChip, SdramTiming

CHIP = SDRAM_CHIPS["IS42S16160G-7"]


def test_cycles_are_rounded_up_and_intervals_down():
    # 10 ns: 20 ns are 2, 45 are 5, 67.5 are 7. 64 ms / 8201 = 7803.9 ns.
    assert CHIP.timing(100) == SdramTiming(
        cas=2, rcd=2, rp=2, ras=5, ras_max=10_000, rc=7, rrd=2, rfc=7, wr=2, mrd=2,
        refresh=780, postponed=8, power_up=26,
    )
    assert CHIP.timing(142.857) == SdramTiming(
        cas=3, rcd=3, rp=3, ras=7, ras_max=14285, rc=10, rrd=3, rfc=10, wr=3, mrd=2,
        refresh=1114, postponed=8, power_up=26,
    )


@pytest.mark.parametrize("chip", SDRAM_CHIPS.values(), ids=lambda chip: chip.name)
@pytest.mark.parametrize("mhz", [12, 48, 75, 100, 110, 133])
def test_cycles_are_never_shorter_than_the_chip_allows(chip, mhz):
    timing, period = chip.timing(mhz), 1000 / mhz
    for name in ("rcd", "rp", "ras", "rc", "rrd", "rfc", "wr"):
        assert (getattr(timing, name) - 1) * period < getattr(chip, name)
        assert getattr(timing, name) * period >= getattr(chip, name) - 1e-6
    late = timing.postponed + 1
    assert (chip.refreshes + late) * timing.refresh * period <= chip.retention
    assert (chip.refreshes + late) * (timing.refresh + 1) * period > chip.retention
    assert (timing.postponed + 2) * timing.refresh * period <= chip.ras_max
    assert timing.power_up * timing.refresh * period >= chip.power_up


def test_sizes():
    assert {name: (chip.size >> 20, chip.width) for name, chip in SDRAM_CHIPS.items()} == {
        "IS42S16160G-7": (32, 16), "W9825G6KH-6": (32, 16), "MT48LC16M16A2-75": (32, 16),
        "AS4C32M16SB-7": (64, 16), "EM638325-7": (8, 32),
    }
    assert SDRAM_CHIPS["AS4C32M16SB-7"].row_bytes == 2048


def test_few_refreshes_are_postponed_if_rows_may_not_be_open_so_long():
    timing = SDRAM_CHIPS["EM638325-7"].timing(100)  # 100 us are 6.4 of its intervals
    assert (timing.postponed, timing.refresh) == (4, 1560)


def test_rate():
    # Of 8 * 780 cycles, 2 + 8 * 7 + 2 have no word.
    assert CHIP.rate(100) == pytest.approx(200 * (1 - 60 / 6240))
    assert SDRAM_CHIPS["EM638325-7"].rate(100) == pytest.approx(400 * (1 - 32 / 6240))


@pytest.mark.parametrize("mhz, text", [
    (150, "mhz must be at most 143 for IS42S16160G-7, not 150"),
    (0, "mhz must be more than 0, not 0"),
    (-5, "mhz must be more than 0, not -5"),
    (float("nan"), "mhz must be more than 0, not nan"),
    (5, (
        "refresh must be at least 40 cycles, for 8 refreshes of 1 and 32 to close the rows, not 39"
    )),
])
def test_rejects_a_clock(mhz, text):
    with rejects(ValueError, text):
        CHIP.timing(mhz)


@pytest.mark.parametrize("changes, text", [
    ({"banks": 3}, "banks must be a power of two in 2..4, not 3"),
    ({"rows": 1}, "rows must be a power of two in 2..8192, not 1"),
    ({"columns": 2048}, "columns must be a power of two in 16..1024, not 2048"),
    ({"width": 64}, "width must be a power of two in 8..32, not 64"),
])
def test_rejects_a_chip(changes, text):
    with rejects(ValueError, text):
        replace(CHIP, **changes)


@pytest.mark.parametrize("error, changes, text", [
    (TypeError, {"rcd": 1.5}, "rcd must be an int, not float"),
    (ValueError, {"wr": 0}, "wr must be at least 1, not 0"),
    (ValueError, {"cas": 4}, "cas must be 2 or 3, not 4"),
    (ValueError, {"power_up": 7}, "power_up must be at least 8, not 7"),
    (ValueError, {"rrd": 4}, "rrd must be at most rcd + 1 = 3, not 4"),
    (ValueError, {"refresh": 87},
     "refresh must be at least 88 cycles, for 8 refreshes of 7 and 32 to close the rows, not 87"),
    (ValueError, {"ras_max": 7799},
     "ras_max must be at least 7800, 10 intervals of refresh, not 7799"),
])
def test_rejects_a_timing(error, changes, text):
    with rejects(error, text):
        replace(CHIP.timing(100), **changes)


def test_a_chip_of_a_stranger():
    chip = SdramChip(
        name="own", rows=4096, columns=256, width=8, refreshes=4096, period_3=10, rcd=30, rp=30,
        ras=60, rc=90, rrd=20, rfc=90, wr=20,
    )
    assert chip.size == 4 << 20 and chip.timing(50).rfc == 5
