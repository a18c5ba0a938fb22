"""The performance page: records, table and picture, and the check for regressions."""

import dataclasses
import json

import pytest

from weft.cli.performance import (
    BEGIN,
    END,
    Measurement,
    PerformanceRecords,
    cost_curve,
    curve,
    problems,
    regressions,
    rows,
)

RECORD = Measurement(
    name="ecp5", device="LFE5U-25F", config={"rows": 4, "cols": 8, "depth": 2}, array_only=False,
    goal=10.0, clock=None, used={"LUT": 5000, "FF": 6000, "DSP": 16, "RAM": 20},
    fmax={"1": 200.0, "2": 180.0, "3": 190.0}, path="a to b", size=128, interval=40960.0,
    simulated=True, design="0123456789abcdef", date="2026-11-21", minutes=7.5,
)
ARRAY = dataclasses.replace(
    RECORD, name="array", array_only=True, goal=None, size=None, interval=None, simulated=False,
)


def changed(**fields):
    return dataclasses.replace(RECORD, **fields)


def test_the_rate_is_peak_times_utilization_times_fmax():
    assert (RECORD.peak, RECORD.best) == (64, 200.0)
    assert RECORD.utilization == 128**3 / 40960 / 64 == 0.8
    assert RECORD.rate == pytest.approx(10.24)
    assert ARRAY.utilization is None and ARRAY.rate is None


def test_rows():
    assert rows([RECORD, ARRAY]) == [
        ["ecp5", "LFE5U-25F", "64", "5,000", "6,000", "16", "20", "200.0 MHz", "190.0 MHz",
         "80.0% at 128^3", "10.24", "0.64", "2.05", "7.5", "10 GMAC/s"],
        ["array", "LFE5U-25F", "64", "5,000", "6,000", "16", "20", "200.0 MHz", "190.0 MHz",
         "-", "-", "-", "-", "7.5", "-"],
    ]
    small = changed(used={"LUT": 100, "FF": 50, "RAM": 3, "SPRAM": 2}, goal=None, clock=150.0)
    [row] = rows([small])
    assert row[5:7] == ["0", "3 + 2"] and row[11:] == ["-", "102.40", "7.5", "over 150 MHz"]


@pytest.mark.parametrize(("record", "found"), [
    (RECORD, []),
    (ARRAY, []),
    (changed(goal=10.25), ["ecp5 must reach 10.25 GMAC/s, not 10.24; critical path: a to b"]),
    (changed(clock=199.9), []),
    (changed(luts=5000), []),
    (changed(luts=4999), ["ecp5 must use at most 4,999 LUTs, not 5,000"]),
    (changed(clock=200.0),
     ["ecp5 must run at over 200 MHz, not 200.0; critical path: a to b"]),
])
def test_a_missed_goal_is_a_problem(record, found):
    assert problems(record, None) == found


def test_a_loss_beyond_the_tolerance_is_a_regression():
    assert regressions(RECORD, changed(interval=40960 * 0.971)) == []
    assert regressions(RECORD, changed(fmax={"1": 150.0})) == []
    assert regressions(RECORD, changed(fmax={"1": 210.0})) == [
        "ecp5 must stay within 3% of the recorded 10.75 GMAC/s, not fall to 10.24"
    ]
    before = dataclasses.replace(ARRAY, fmax={"1": 207.0})
    assert regressions(ARRAY, before) == [
        "array must stay within 3% of the recorded 207.00 MHz, not fall to 200.00"
    ]
    assert len(problems(changed(goal=11.0), changed(fmax={"1": 210.0}))) == 2


def test_saving_keeps_history_and_the_text_around_the_table(tmp_path):
    records = PerformanceRecords(tmp_path, tmp_path)
    records.add(RECORD)
    records.add(ARRAY)
    records.save(["ecp5", "array", "not measured yet"])
    page = tmp_path / "performance.md"
    text = page.read_text()
    assert text.startswith("# Performance\n") and "| 10.24 |" in text
    page.write_text(f"# Mine\n\nbefore\n{BEGIN}\nold\n{END}\nafter\n")
    again = PerformanceRecords(tmp_path, tmp_path)
    assert again.latest == {"ecp5": RECORD, "array": ARRAY}
    again.add(changed(fmax={"1": 201.0}))                            # the same design
    again.add(changed(fmax={"1": 220.0}, design="fedcba9876543210"))  # another one
    again.save(["array", "ecp5"])
    text = page.read_text()
    assert text.startswith(f"# Mine\n\nbefore\n{BEGIN}\n") and text.endswith(f"{END}\nafter\n")
    assert "old" not in text and text.index("| array |") < text.index("| ecp5 |")
    kept = json.loads((tmp_path / "performance.json").read_text())
    assert [one["fmax"] for one in kept if one["name"] == "ecp5"] == [{"1": 201.0}, {"1": 220.0}]
    assert (tmp_path / "performance.png").read_bytes()[:4] == b"\x89PNG"


def test_the_page_lists_the_clock_that_each_block_allows(tmp_path):
    records = PerformanceRecords(tmp_path, tmp_path)
    records.add(changed(arrivals={"array": 5.0, "sequencer": 4.0}))
    records.add(changed(name="up5k", arrivals={"link": 20.0, "array": 2.0}))
    records.add(dataclasses.replace(ARRAY, arrivals={"array": 3.0}))
    records.add(changed(name="old"))
    records.save(["ecp5", "up5k", "array", "old"])
    text = (tmp_path / "performance.md").read_text()
    assert text.count("""
| block | ecp5 | up5k |
| ---|---:|---: |
| link | - | 50 |
| array | 200 | 500 |
| sequencer | 250 | - |
""") == 1


def test_rejects_a_damaged_record_file(tmp_path):
    for text in ("[{", '[{"name": "x"}]', "7"):
        (tmp_path / "performance.json").write_text(text)
        with pytest.raises(OSError, match="performance.json must hold records of weft bench: "):
            PerformanceRecords(tmp_path, tmp_path)


def test_rejects_a_page_without_the_table_marks(tmp_path):
    (tmp_path / "performance.md").write_text("# Mine\n")
    with pytest.raises(OSError, match="must have the lines '<!-- the table: weft bench writes"):
        PerformanceRecords(tmp_path, tmp_path).save([])


def test_the_curve_has_the_whole_int8_accelerators_of_one_device():
    large = changed(name="large", device="LFE5U-85F", config={"rows": 8, "cols": 8, "depth": 8})
    small = changed(name="small", device="LFE5U-85F")
    bf16 = changed(name="bf16", device="LFE5U-85F", config={"dtype": "bf16"})
    array = dataclasses.replace(ARRAY, device="LFE5U-85F")
    assert curve([large, RECORD, bf16, array, small]) == [small, large]


def test_the_curve_is_drawn_from_two_designs_on(tmp_path):
    small = changed(name="small", device="LFE5U-85F")
    large = changed(name="large", device="LFE5U-85F", config={"rows": 8, "cols": 8, "depth": 8})
    picture = tmp_path / "performance-cost.png"
    cost_curve([small, RECORD], picture)
    assert not picture.exists()
    for untimed in ([], [large], [small, large]):
        records = [dataclasses.replace(record, minutes=None) if record in untimed else record
                   for record in (small, large)]
        cost_curve(records, picture)
        assert picture.read_bytes()[:4] == b"\x89PNG"
        picture.unlink()
