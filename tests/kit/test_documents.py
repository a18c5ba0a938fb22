"""Documents of the register map: SystemRDL, IP-XACT, C and Markdown agree with its source."""

import re
import subprocess
from xml.etree import ElementTree

import pytest
from systemrdl import RDLCompiler
from tiers import tiers

from weft.buses import BUSES
from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import documents, markdown, systemrdl
from weft.kit.files.weft_driver import compiler
from weft.register_map import fifo_ports, registers
from weft.registers import REGISTERS, describe

CONFIG = Config(rows=2, cols=4)
buses = pytest.mark.parametrize("bus", tiers({bus: bus for bus in BUSES}, "axi", "dma"))
IPXACT = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"


@buses
def test_rdl_has_every_field_at_its_address(bus, tmp_path):
    ip = Ip(config=CONFIG, bus=bus)
    (tmp_path / "core.rdl").write_text(systemrdl(ip))
    compiler = RDLCompiler()
    compiler.compile_file(str(tmp_path / "core.rdl"))
    top = compiler.elaborate().top
    found = {
        (r.inst_name, r.address_offset, f.inst_name, f.low, f.width)
        for r in top.registers() if not r.is_array for f in r.fields()
    }
    want = {
        (r.name, r.address, f.name, f.low, f.width) for r in registers(ip) for f in r.fields
    }
    assert found == want
    for window in fifo_ports(ip):
        node = top.find_by_path(f"{window.name}[0]")
        assert node.absolute_address == window.address
        assert node.array_dimensions == [window.size // 4]
    constants = dict(zip(REGISTERS, describe(CONFIG), strict=False))
    for name, value in constants.items():
        assert top.find_by_path(f"{name}.value").get_property("reset") == value
    assert top.find_by_path("irq_status.done").is_sw_writable
    assert not top.find_by_path("magic.value").is_sw_writable
    assert not top.find_by_path("control.reset").is_sw_readable


@buses
def test_header_compiles_and_agrees(bus, tmp_path):
    ip = Ip(config=CONFIG, bus=bus)
    name = f"{ip.name}_regs.h"
    (tmp_path / name).write_bytes(documents(ip, "1")[name])
    checks = [f"offsetof(weft_t, {r.name}) == {r.address}" for r in registers(ip)]
    checks += [f"offsetof(weft_t, {w.name}) == {w.address}" for w in fifo_ports(ip)]
    checks += [
        f"WEFT__{r.name.upper()}__{f.name.upper()}_bm == {(1 << f.width) - 1 << f.low}u"
        for r in registers(ip) for f in r.fields
    ]
    lines = [f"typedef char check_{n}[({text}) ? 1 : -1];" for n, text in enumerate(checks)]
    source = "\n".join(["#include <stddef.h>", f'#include "{name}"', *lines, ""])
    (tmp_path / "check.c").write_text(source)
    flags = ["-std=c99", "-Wall", "-Werror", "-ffreestanding", "-pedantic"]
    done = subprocess.run(
        [*compiler(), *flags, "-c", "check.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@buses
def test_ipxact_has_every_register_at_its_address(bus):
    ip = Ip(config=CONFIG, bus=bus)
    root = ElementTree.fromstring(documents(ip, "1.2")[f"{ip.name}_regs.xml"])
    assert root.findtext(f"{IPXACT}name") == ip.name
    assert root.findtext(f"{IPXACT}version") == "1.2"
    found = {
        r.findtext(f"{IPXACT}name"): int(r.findtext(f"{IPXACT}addressOffset")[2:], 16)
        for r in root.iter(f"{IPXACT}register")
    }
    assert found == {r.name: r.address for r in (*registers(ip), *fifo_ports(ip))}


@buses
def test_page_has_every_register(bus):
    ip = Ip(config=CONFIG, bus=bus)
    page = markdown(ip)
    rows = re.findall(r"^\| 0x(\w+)(?:\.\.0x\w+)? \| `(\w+)` \|", page, re.M)
    assert {name: int(address, 16) for address, name in rows} == {
        r.name: r.address for r in (*registers(ip), *fifo_ports(ip))
    }
    assert f"| 0x000 | `magic` | ro | 0x{describe(CONFIG)[0]:08x} |" in page


@buses
def test_same_bytes_every_time(bus, monkeypatch):
    ip = Ip(config=CONFIG, bus=bus)
    clock = iter(range(1_900_000_000, 2_000_000_000, 1000))
    monkeypatch.setattr("time.time", lambda: next(clock))
    first, second = documents(ip, "1"), documents(ip, "1")
    assert first == second
    assert any(name.startswith("html/content/") for name in first)
    words = re.compile(rb"/tmp/|/home/|20[0-9]{2}-[0-9]{2}-[0-9]{2}")
    assert [name for name, data in first.items() if words.search(data)] == []
