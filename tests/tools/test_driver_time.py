"""The host time of products: the parts of a call add up, for both kinds of core."""

import re

import pytest
from network_cores import SMALL

from tools import driver_time
from weft.config import Config


@pytest.mark.parametrize("design", [Config(rows=2, cols=2), SMALL], ids=lambda d: d.kind)
def test_the_parts_of_a_call(design):
    [(whole, arithmetic, memory, rest)] = [driver_time.measure(5, 1, design)]
    assert min(whole, arithmetic, memory, rest) > 0
    assert whole == pytest.approx(arithmetic + memory + rest)


def test_prints_both_kinds_of_core(capsys):
    assert driver_time.main(["--size", "3", "--calls", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    number = r"\d+\.\d{3} ms"
    for line, kind in zip(lines, ("product core", "network core"), strict=True):
        assert re.fullmatch(
            rf"{kind}: matmul of 3x3x3: {number} a call, golden's arithmetic {number}, its memory"
            rf" {number}, the driver {number}", line,
        )


def test_refuses_no_call(capsys):
    with pytest.raises(SystemExit):
        driver_time.main(["--calls", "0"])
    assert "calls must be 1 or more, not 0" in capsys.readouterr().err
