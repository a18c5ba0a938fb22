"""The FuseSoC core file: the files that it names exist, and include all files of the bench."""

import re

import pytest

from weft.buses import BUSES


@pytest.mark.parametrize("bus, more", [
    *(pytest.param(bus, {}, marks=() if bus == "axi" else pytest.mark.slow) for bus in BUSES),
    pytest.param("axi", {"target": "ecp5", "rows": 1, "cols": 2}, marks=pytest.mark.slow),
])
def test_names_existing_files(kits, bus, more):
    ip, files = kits(bus, **more)
    text = files[f"{ip.name}.core"].decode()
    assert text.startswith("CAPI=2:\n")
    assert f"\nname: weft:ip:{ip.name}:" in text
    sets = dict(re.findall(r"^  (\w+):\n    files:\n((?:      - .*\n)+)", text, re.M))
    filesets = {name: set(re.findall(r"- ([^\s:]+)", lines)) for name, lines in sets.items()}
    assert set.union(*filesets.values()) <= set(files)
    needed = {
        name for name in files
        if name.startswith(("bench/", "driver/")) and not name.endswith("Makefile")
    }
    assert needed <= filesets["bench"]
    assert filesets["rtl"] == {f"{ip.name}.v"}
    assert ("models" in filesets) == bool(more)
