"""A complete kit: links and manifest match its files, and the bytes are reproducible."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import quick

from weft.buses import BUSES
from weft.designs import design_from_toml
from weft.kit.build import guide
from weft.kit.folder import MANIFEST, write

buses = pytest.mark.parametrize("bus", [
    "axi", *(
        pytest.param(bus, marks=pytest.mark.slow) for bus in (*BUSES, "networks") if bus != "axi"
    ),
])
ROOT = Path(__file__).resolve().parents[2]
AGAIN = """\
import sys
from weft.config import Config
from weft.ip import Ip
from weft.kit.build import build
ip = Ip(config=Config(rows=2, cols=4, a_words=64, b_words=64), bus="axi")
sys.stdout.buffer.write(build(ip)["kit.json"])
"""


@buses
def test_links_and_manifest_match_the_files(kits, bus):
    ip, files = kits(bus)
    page = files["README.md"].decode()
    links = set(re.findall(r"\]\(([^)]+)\)", page))
    assert links <= set(files)
    assert set(guide(ip, files)) <= links
    found = json.loads(files[MANIFEST])
    assert (found["name"], found["bus"]) == (ip.name, ip.bus)
    assert found["files"] == {
        name: hashlib.sha256(data).hexdigest()
        for name, data in files.items() if name != MANIFEST
    }


@pytest.mark.slow
def test_same_bytes_in_another_process(kits, tmp_path):
    """With another hash seed, folder and time zone."""
    env = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Pacific/Chatham"}
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], cwd=tmp_path, env=env, capture_output=True, timeout=600
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == kits("axi")[1][MANIFEST]


@buses
def test_contains_no_name_of_this_machine(kits, bus):
    names = [str(ROOT), str(Path.home()), sys.prefix, "/tmp/", platform.node()]
    words = [word.encode() for word in names if len(word) > 4]
    for name, data in kits(bus)[1].items():
        assert not [word for word in words if word in data], name


@pytest.mark.slow
def test_core_with_primitives_has_their_models(kits, tmp_path):
    """The core and the models of its primitives elaborate together."""
    ip, files = kits("axi", target="ecp5", rows=1, cols=2)
    write(tmp_path / "kit", files)
    sources = [f"{ip.name}.v", f"{ip.name}_primitives.v"]
    assert "MULT18X18D" in files[sources[0]].decode()
    subprocess.run(
        ["iverilog", "-g2005", "-t", "null", "-s", ip.name, *sources],
        cwd=tmp_path / "kit", check=True, timeout=600,
    )
    assert set(sources) <= set(guide(ip, files))


@pytest.mark.parametrize("bus", quick(1, ["axi", "dma", "networks"]))
def test_module_names_start_with_the_name_of_the_core(kits, bus):
    ip, files = kits(bus)
    modules = re.findall(r"^module (\S+?)\(", files[f"{ip.name}.v"].decode(), re.M)
    assert modules
    assert [name for name in modules if not name.lstrip("\\").startswith(ip.name)] == []


@pytest.mark.parametrize("bus", quick(1, ["axi", "stream", "networks"]))
def test_config_file_gives_the_same_ip(kits, bus, tmp_path):
    ip, files = kits(bus)
    (tmp_path / "config.toml").write_bytes(files["config.toml"])
    assert design_from_toml(tmp_path / "config.toml") == ip.config
