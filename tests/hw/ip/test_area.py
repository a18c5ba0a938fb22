"""What register buses take on an ECP5: the slave and the control, windows' queues aside."""

import json
import subprocess

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from weft.config import Config
from weft.hw.ip.axi_lite import AxiLite
from weft.hw.ip.control import Control
from weft.hw.ip.wishbone import Wishbone
from weft.ip import Ip
from weft.sim import tools
from weft.sim.build import folder

MOST = 400
SCRIPT = """\
read_rtlil top.il
synth_ecp5 -nowidelut -noiopad -top top
tee -q -o found.json stat -json
"""
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}  # that a cell takes


class Registers(wiring.Component):
    """A bus and what it controls."""

    def __init__(self, ip, bus):
        self.bus, self.control = bus, Control(ip)
        self.parts = [
            (f"{name}_{member}", getattr(part, member), flow)
            for name, part in (("bus", bus), ("control", self.control))
            for member, flow in part.signature.members.items() if member != "port"
        ]
        super().__init__({name: member for name, _, member in self.parts})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bus, m.submodules.control = self.bus, self.control
        connect(m, self.bus.port, self.control.port)
        for name, inner, member in self.parts:
            outer = getattr(self, name)
            if member.is_port:
                given, taken = (inner, outer) if member.flow == wiring.In else (outer, inner)
                m.d.comb += given.eq(taken)
            else:
                connect(m, wiring.flipped(outer), inner)
        return m


@pytest.mark.parametrize("bus", ["axi", "wishbone", "wishbone-pipelined"])
def test_a_slave_and_its_registers_are_small(bus):
    kind, _, pipelined = bus.partition("-")
    ip = Ip(config=Config(), bus=kind, pipelined=bool(pipelined))
    slave = AxiLite() if kind == "axi" else Wishbone(pipelined=ip.pipelined)
    design = rtlil.convert(Registers(ip, slave), name="top", emit_src=False)
    place = folder() / "area" / bus  # not below the folder for temporary files, which Yosys lacks
    place.mkdir(parents=True, exist_ok=True)
    (place / "top.il").write_text(design, encoding="utf-8")
    (place / "top.ys").write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run(
        [tools.yosys().path, "-q", "-s", "top.ys"], cwd=place, capture_output=True, text=True
    )
    assert run.returncode == 0, (run.stderr + run.stdout)[-1500:]
    said = json.loads((place / "found.json").read_text(encoding="utf-8"))
    cells = said["design"]["num_cells_by_type"]
    found = sum(count * cells.get(cell, 0) for cell, count in LUTS.items())
    print(bus, found, cells)
    assert 100 < found < MOST
