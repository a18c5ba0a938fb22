"""A SoC without a processor, simulated: a host multiplies on the core over TCP.

The host's bytes go over TCP to the simulation's serial port, from there through LiteX's bridge onto
the SoC's bus, and to the core: as they would over a real serial port. Wants litex,
pythondata-misc-tapcfg, numpy, Verilator, a C compiler, libevent and json-c
(``apt-get install libevent-dev libjson-c-dev``)::

    python example_soc.py [folder of the build]
"""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.build.sim.config import SimConfig
from litex.soc.cores.uart import RS232PHYModel, UARTBone
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.tools.remote.comm_uart import CommUART
from weft_litex import Weft

PORT, ORIGIN, CLOCK = 24301, 0x3000_0000, 1_000_000
LIMIT = 900  # seconds that all of it may take
IO = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(
        Subsignal(f"{end}_{name}", Pins(width))
        for end in ("source", "sink") for name, width in (("valid", 1), ("ready", 1), ("data", 8))
    )),
]


class Platform(SimPlatform):
    """Verilator, with a clock and a serial port."""

    def __init__(self):
        super().__init__("SIM", IO)


class Soc(SoCCore):
    """A bus with a bridge from the serial port as its master, and the core as its slave."""

    def __init__(self, platform):
        super().__init__(
            platform, CLOCK, cpu_type=None, integrated_rom_size=0, integrated_sram_size=0,
            with_uart=False, with_timer=False, ident="Weft", bus_timeout=None,
        )
        self.crg = CRG(platform.request("sys_clk"))
        self.phy = RS232PHYModel(platform.request("serial"))
        self.bridge = UARTBone(phy=self.phy, clk_freq=CLOCK)
        self.bus.add_master(name="bridge", master=self.bridge.wishbone)
        self.weft = Weft(platform)
        self.bus.add_slave(
            "weft", self.weft.bus, SoCRegion(origin=ORIGIN, size=0x1000, cached=False)
        )


class Host:
    """What drives the core from afar: its registers, and products."""

    def __init__(self, wire, packing):
        self.wire, self.packing = wire, packing
        design = packing.DESIGN
        self.places = {name: r["address"] for name, r in design["registers"].items()}
        self.places |= design["fifo_ports"]
        self.fields = {name: r["fields"] for name, r in design["registers"].items()}

    def read(self, name):
        return self.wire.read(ORIGIN + self.places[name])

    def write(self, name, value):
        self.wire.write(ORIGIN + self.places[name], value)

    def multiply(self, a, b, tag):
        """The product of [m, k] and [k, n], as the core computes it."""
        p, ((m, k), n) = self.packing, (a.shape, b.shape[1])
        stream = p.load(p.A, m, k) + p.pack(a, p.A) + p.load(p.B, n, k)
        stream += p.pack(np.ascontiguousarray(b.T), p.B) + p.job(m, n, k, tag)
        room = 0
        for word in np.frombuffer(stream, "<u4").tolist():
            while not room:
                room = self.read("cmd_fifo_free")
            self.write("cmd_fifo", word)
            room -= 1
        while not (level := self.read("result_level")) >> 16 & 1:
            pass
        assert (level >> 24, self.read("result_tag")) == (0, tag)
        words = [self.read("result_fifo") for _ in range(level & 0xFFFF)]
        return p.unpack(np.array(words, "<u4").tobytes(), m, n)


def build(folder):
    """The simulation's program."""
    config = SimConfig()
    config.add_clocker("sys_clk", freq_hz=CLOCK)
    config.add_module("serial2tcp", "serial", args={"port": PORT, "bind_ip": "127.0.0.1"})
    soc = Soc(Platform())
    Builder(
        soc, output_dir=str(folder), compile_software=False, compile_gateware=True
    ).build(sim_config=config, run=False, opt_level="O1", interactive=False)
    gateware = folder / "gateware"
    # Models of several C++ files do not link with their precompiled header otherwise.
    flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    done = subprocess.run(
        ["bash", "build_sim.sh"], cwd=gateware, env={**os.environ, "MAKEFLAGS": flags},
        capture_output=True, text=True,
    )
    if done.returncode:
        sys.exit(f"the simulation must build, and does not:\n{(done.stdout + done.stderr)[-3000:]}")
    return gateware


def connect(limit=30):
    """The serial port of the simulation, once it is there."""
    for _ in range(10 * limit):
        try:
            return CommUART(f"socket://127.0.0.1:{PORT}")
        except OSError:
            time.sleep(0.1)
    sys.exit(f"the simulation must listen on port {PORT} in {limit} s, and does not")


def check(host):
    """Products of several shapes against numpy; how many are wrong."""
    rng, wrong = np.random.default_rng(1), 0
    constants = host.packing.DESIGN["constants"]
    for name in ("magic", "version", "hash"):
        assert host.read(name) == constants[name], f"{name} is that of another core"
    rows, cols, depth = (host.packing.CONFIG[name] for name in ("rows", "cols", "depth"))
    shapes = [(1, 1, 1), (rows, 2 * depth, cols), (rows + 1, 3 * depth + 1, 2 * cols - 1)]
    for tag, (m, k, n) in enumerate(shapes):
        if host.packing.FLOATS:
            x, y = (rng.integers(-16, 17, s).astype(np.float32) for s in ((m, k), (k, n)))
            a, b = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, y))
        else:
            a, b = x, y = [rng.integers(-128, 128, s, dtype=np.int8) for s in ((m, k), (k, n))]
        right = np.array_equal(host.multiply(a, b, tag), x.astype(np.int64) @ y.astype(np.int64))
        print(f"{m} x {k} x {n}: {'equal to numpy' if right else 'WRONG'}")
        wrong += not right
    return wrong


def _late(*_):
    raise TimeoutError(f"products must be there in {LIMIT} s, and are not")


def main(folder="build_litex"):
    """Build, run, multiply; 0 where all is right."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(LIMIT)
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here.parent / "bench"))
    packing = importlib.import_module("weft_packing")
    if not packing.DESIGN["fifo_ports"]:
        sys.exit(f"a kit of bus axi or wishbone is wanted, not {packing.DESIGN['bus']}")
    gateware = build(Path(folder).resolve())
    simulation = subprocess.Popen(
        [str(gateware / "obj_dir" / "Vsim")], cwd=gateware, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wrong = check(Host(connect(), packing))
    finally:
        simulation.terminate()
        simulation.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
