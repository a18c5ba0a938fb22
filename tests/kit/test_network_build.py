"""The kit of a network core: what only it has."""

import re

import pytest

from weft.network_core.descriptors import KINDS, places

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kit(kits):
    return kits("networks")


def test_the_head_names_network_core_and_command(kit):
    ip, files = kit
    head = files[f"{ip.name}.v"].decode()[:2000]
    command = "weft generate --bus axi --prefix mm --config config.toml"
    assert command in head and f"hash is {ip.config.hash:08x}." in head


def test_names_of_the_driver_start_with_the_prefix(kit):
    ip, files = kit
    drivers = {name for name in files if name.startswith("driver/")}
    assert drivers == {
        f"driver/{name}" for name in ("mm.c", "mm.h", "mm_config.h", f"{ip.name}_regs.h")
    }
    assert not [name for name in drivers if re.search(rb"\b(weft|WEFT)_", files[name])]


def test_the_page_of_lists_has_no_links(kit):
    assert "](" not in kit[1]["lists.md"].decode()  # links would lead out of the kit


def test_the_page_of_lists_has_all_fields_of_the_core_in_their_order(kit):
    ip, files = kit
    page = files["lists.md"].decode()
    for kind in KINDS.values():
        section = page.partition(f"### {kind.__name__}, opcode {kind.OPCODE.value}\n")[2]
        rows = re.findall(
            r"^\| (\d+) \| (?:(\d+)\.\.)?(\d+) \| `(\w+)` \| .+ \| .+ \|$",
            section.partition("### ")[0], re.M,
        )
        found = [(int(word), int(low), int(high or low), name) for word, high, low, name in rows]
        assert found == [
            (place.word, place.low, place.low + place.bits - 1, place.name)
            for place in places(kind, ip.config)
        ]


def test_registers_have_the_values_of_the_network_core(kit):
    ip, files = kit
    page = files[f"{ip.name}_regs.md"].decode()
    assert f"| `hash` | ro | 0x{ip.config.hash:08x} |" in page
    assert "| 0x424 | `limit` | rw |" in page and "## memory_layout (0x42c)" in page


def test_the_kit_has_a_module_for_litex_and_no_soc(kit):
    files = kit[1]
    assert {name for name in files if name.startswith("litex/")} == {
        "litex/weft_litex.py", "litex/weft_pins.py"
    }
