"""The core file for FuseSoC: it names files that are there, and all that its bench wants."""

import re

import pytest

from weft.ip import BUSES


@pytest.mark.parametrize("bus, more", [*((bus, {}) for bus in BUSES), ("axi", {
    "target": "ecp5", "rows": 1, "cols": 2,
})])
def test_names_files_that_are_there(kits, bus, more):
    ip, files = kits(bus, **more)
    text = files[f"{ip.name}.core"].decode()
    assert text.startswith("CAPI=2:\n")
    assert f"\nname: weft:ip:{ip.name}:" in text
    sets = dict(re.findall(r"^  (\w+):\n    files:\n((?:      - .*\n)+)", text, re.M))
    held = {name: set(re.findall(r"- ([^\s:]+)", lines)) for name, lines in sets.items()}
    assert set.union(*held.values()) <= set(files)
    wanted = {
        name for name in files
        if name.startswith(("bench/", "driver/")) and not name.endswith("Makefile")
    }
    assert wanted <= held["bench"]
    assert held["rtl"] == {f"{ip.name}.v"}
    assert ("models" in held) == bool(more)
