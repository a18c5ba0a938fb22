"""The Verilog of extreme Configs passes Verilator's lint without a warning."""

import pytest

from weft.config import Config
from weft.sim.build import lint

TINY = {"rows": 1, "cols": 1, "a_words": 32, "b_words": 32, "jobs": 2}
CORNERS = {
    "one of all": Config(**TINY, lanes=1, bytes_in=1, bytes_out=1, hop=1),
    "one of all, bf16": Config(**TINY, dtype="bf16", lanes=1, c_words=32),
}


@pytest.mark.slow
@pytest.mark.parametrize("config", CORNERS.values(), ids=CORNERS)
def test_accepts_corners(config):
    assert lint(config) == ""


def test_returns_the_warning(monkeypatch):
    text = "module weft(input a, output b); assign b = a <= 1'h1; endmodule\n"
    monkeypatch.setattr("weft.sim.build.verilog", lambda config: text)
    output = lint(CORNERS["one of all"])
    assert output.startswith("status 1\n%Warning-CMPCONST: weft.v:1:")
