"""Every file of a kit has an SPDX identifier, and keeps its contents."""

import json
import re
from pathlib import Path

import pytest

from weft.kit.build import licensed

ROOT = Path(__file__).resolve().parents[2]
TAG = "SPDX-License-Identifier: BSD-2-Clause"


@pytest.mark.parametrize("bus", ["axi", "dma", pytest.param("networks", marks=pytest.mark.slow)])
def test_every_file_has_an_identifier(kits, bus):
    _, files = kits(bus)
    without = [
        name for name, data in files.items()
        if not name.startswith("html/") and name != "LICENSE"
        and TAG not in data.decode().replace('"', "")
    ]
    assert without == []


@pytest.mark.parametrize("name, before, after", [
    ("a.c", "int a;\n", f"/* {TAG} */\nint a;\n"),
    ("a.core", "CAPI=2:\nname: a\n", f"CAPI=2:\n# {TAG}\nname: a\n"),
    ("a.vlt", "`verilator_config\nlint_off\n", f"`verilator_config\n// {TAG}\nlint_off\n"),
    ("a.xml", '<?xml version="1.0"?>\n<a/>\n', f'<?xml version="1.0"?>\n<!-- {TAG} -->\n<a/>\n'),
    ("a.md", "# A\n", f"# A\n\n<!-- {TAG} -->\n"),
    ("bench/Makefile", "all:\n", f"# {TAG}\nall:\n"),
    ("a.v", f"// {TAG}\nmodule\n", f"// {TAG}\nmodule\n"),
    ("html/index.html", "<p>", "<p>"),
])
def test_identifier_is_in_a_comment_of_the_format(name, before, after):
    assert licensed(name, before.encode()).decode() == after


def test_json_keeps_its_values():
    data = licensed("a.json", b'{\n "name": "core",\n "n": [1]\n}\n')
    values = json.loads(data)
    assert values.pop("SPDX-License-Identifier") == "BSD-2-Clause"
    assert values == {"name": "core", "n": [1]}


def test_bench_pins_the_tested_versions(kits):
    """The versions agree with the lock file of the tests."""
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "locks/test.txt").read_text(), re.M))
    for bus in ("axi", "wishbone", "apb"):
        lines = kits(bus)[1]["bench/requirements.txt"].decode().splitlines()[1:]
        pins = dict(line.split("==") for line in lines)
        assert set(pins) == {"cocotb", "numpy", f"cocotbext-{bus}"}
        assert pins.items() <= locked.items()
