"""The kit of a core for networks: its files, their links, and what makes it again."""

import hashlib
import json
import re
import subprocess

import pytest
from network_chips import small_chip

from weft.chip.config import ChipConfig
from weft.chip.ip import NetworkIp
from weft.kit.build import build, guide
from weft.kit.folder import MANIFEST, write
from weft.sim.tools import verilator

pytestmark = pytest.mark.slow
IP = NetworkIp(chip=small_chip(2, 2, 2, words=64), bus="axi", prefix="mm")


@pytest.fixture(scope="module")
def files():
    return build(IP)


def test_links_and_manifest_match_the_files(files):
    page = files["README.md"].decode()
    links = set(re.findall(r"\]\(([^)]+)\)", page))
    assert links <= set(files)
    assert set(guide(IP, files)) <= links
    found = json.loads(files[MANIFEST])
    assert (found["name"], found["bus"]) == ("mm_axi_networks_2x2x2", "axi")
    assert found["files"] == {
        name: hashlib.sha256(data).hexdigest()
        for name, data in files.items() if name != MANIFEST
    }
    assert "](" not in files["lists.md"].decode()  # links would lead out of the kit


def test_config_file_gives_the_same_ip(files, tmp_path):
    (tmp_path / "config.toml").write_bytes(files["config.toml"])
    assert ChipConfig.from_toml(tmp_path / "config.toml") == IP.chip
    head = files[f"{IP.name}.v"].decode()[:2000]
    command = "weft generate --bus axi --prefix mm --config config.toml"
    assert command in head and f"ChipConfig {IP.chip.hash:08x}." in head


def test_names_start_with_the_prefix(files):
    modules = re.findall(r"^module (\S+?)\(", files[f"{IP.name}.v"].decode(), re.M)
    assert modules
    assert [name for name in modules if not name.lstrip("\\").startswith(IP.name)] == []
    drivers = {name for name in files if name.startswith("driver/")}
    assert drivers == {
        f"driver/{name}" for name in ("mm.c", "mm.h", "mm_config.h", f"{IP.name}_regs.h")
    }
    assert not [name for name in drivers if re.search(rb"\b(weft|WEFT)_", files[name])]


def test_every_file_has_a_licence(files):
    without = [
        name for name, data in files.items() if b"SPDX-License-Identifier" not in data
    ]
    assert [name for name in without if name != "LICENSE" and not name.startswith("html/")] == []


def test_registers_have_the_values_of_the_chip(files):
    page = files[f"{IP.name}_regs.md"].decode()
    assert f"| `hash` | ro | 0x{IP.chip.hash:08x} |" in page
    assert "| 0x424 | `limit` | rw |" in page and "## memory_layout (0x42c)" in page


def test_lints_clean(files, tmp_path):
    write(tmp_path / "kit", files)
    done = subprocess.run(
        [verilator().path, "--lint-only", "-Wall", f"{IP.name}.vlt", f"{IP.name}.v",
         "--top-module", IP.name],
        cwd=tmp_path / "kit", capture_output=True, text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
