"""The documents list the same types of frames as the code."""

import re
from pathlib import Path

from weft.frames import FrameType


def test_types_are_documented():
    page = (Path(__file__).parents[1] / "docs" / "interfaces.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0x\w\w|\d) ([A-Z]+) \|", page, re.M)
    assert len(rows) >= 8
    for number, name in rows:
        assert FrameType[name] == int(number, 0)
