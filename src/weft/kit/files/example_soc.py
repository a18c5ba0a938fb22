"""A LiteX SoC with the core and without a processor, in simulation: a host computes products.

The host connects over TCP to the serial port of the simulation. LiteX's UARTBone turns the bytes
into accesses on the SoC's bus, as with a real serial port. The example needs litex,
pythondata-misc-tapcfg, numpy, Verilator, a C compiler, libevent and json-c
(``apt-get install libevent-dev libjson-c-dev``)::

    python example_soc.py [build folder]
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
TIMEOUT = 900  # seconds for the whole example
IO = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(
        Subsignal(f"{stream}_{name}", Pins(width))
        for stream in ("source", "sink")
        for name, width in (("valid", 1), ("ready", 1), ("data", 8))
    )),
]


class Platform(SimPlatform):
    """A Verilator simulation with a clock and a serial port."""

    def __init__(self):
        super().__init__("SIM", IO)


class SerialSoc(SoCCore):
    """A bus with a serial bridge as its master and the core as its slave."""

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


class SocHost:
    """Accesses the core's registers over the serial port, and computes products."""

    def __init__(self, port, packing):
        self.port, self.packing = port, packing
        design = packing.DESIGN
        self.addresses = {name: r["address"] for name, r in design["registers"].items()}
        self.addresses |= design["fifo_ports"]

    def read(self, name):
        return self.port.read(ORIGIN + self.addresses[name])

    def write(self, name, value):
        self.port.write(ORIGIN + self.addresses[name], value)

    def multiply(self, a, b, tag):
        """The product of A[m, k] and B[k, n], computed by the core."""
        p, ((m, k), n) = self.packing, (a.shape, b.shape[1])
        stream = p.load(p.A, m, k) + p.pack(a, p.A) + p.load(p.B, n, k)
        stream += p.pack(np.ascontiguousarray(b.T), p.B) + p.job(m, n, k, tag)
        free = 0
        for word in np.frombuffer(stream, "<u4").tolist():
            while not free:
                free = self.read("cmd_fifo_free")
            self.write("cmd_fifo", word)
            free -= 1
        while not (level := self.read("result_level")) >> 16 & 1:  # complete
            pass
        assert (level >> 24, self.read("result_tag")) == (0, tag)  # status 0
        words = [self.read("result_fifo") for _ in range(level & 0xFFFF)]
        return p.unpack(np.array(words, "<u4").tobytes(), m, n)


def build(folder):
    """Build the simulation; the folder with its program."""
    config = SimConfig()
    config.add_clocker("sys_clk", freq_hz=CLOCK)
    config.add_module("serial2tcp", "serial", args={"port": PORT, "bind_ip": "127.0.0.1"})
    soc = SerialSoc(Platform())
    Builder(
        soc, output_dir=str(folder), compile_software=False, compile_gateware=True
    ).build(sim_config=config, run=False, opt_level="O1", interactive=False)
    gateware = folder / "gateware"
    # Without this option Verilator's makefile fails to link its precompiled header.
    flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    done = subprocess.run(
        ["bash", "build_sim.sh"], cwd=gateware, env={**os.environ, "MAKEFLAGS": flags},
        capture_output=True, text=True,
    )
    if done.returncode:
        sys.exit(f"building the simulation failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return gateware


def connect(seconds=30):
    """Connect to the serial port of the simulation, when it accepts connections."""
    for _ in range(10 * seconds):
        try:
            return CommUART(f"socket://127.0.0.1:{PORT}")
        except OSError:
            time.sleep(0.1)
    sys.exit(f"the simulation did not listen on port {PORT} within {seconds} s")


def check(host):
    """Compare products of several shapes with numpy; how many are wrong."""
    rng, wrong = np.random.default_rng(1), 0
    constants = host.packing.DESIGN["constants"]
    for name in ("magic", "version", "kind", "hash"):
        assert host.read(name) == constants[name], f"register {name} belongs to another core"
    rows, cols, depth = (host.packing.CONFIG[name] for name in ("rows", "cols", "depth"))
    shapes = [(1, 1, 1), (rows, 2 * depth, cols), (rows + 1, 3 * depth + 1, 2 * cols - 1)]
    for tag, (m, k, n) in enumerate(shapes):
        if host.packing.FLOATS:
            x, y = (rng.integers(-16, 17, s).astype(np.float32) for s in ((m, k), (k, n)))
            a, b = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, y))
        else:
            a, b = x, y = [rng.integers(-128, 128, s, dtype=np.int8) for s in ((m, k), (k, n))]
        equal = np.array_equal(host.multiply(a, b, tag), x.astype(np.int64) @ y.astype(np.int64))
        print(f"{m} x {k} x {n}: {'equal to numpy' if equal else 'WRONG'}")
        wrong += not equal
    return wrong


def _timeout(*_):
    raise TimeoutError(f"the products were not computed within {TIMEOUT} s")


def main(folder="build_litex"):
    """Build and run the simulation, and compute products; 0 if all equal numpy's."""
    signal.signal(signal.SIGALRM, _timeout)
    signal.alarm(TIMEOUT)
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here.parent / "bench"))
    packing = importlib.import_module("weft_packing")
    if not packing.DESIGN["fifo_ports"]:
        sys.exit(f"the kit's core must have FIFO ports; its bus is {packing.DESIGN['bus']}")
    gateware = build(Path(folder).resolve())
    simulation = subprocess.Popen(
        [str(gateware / "obj_dir" / "Vsim")], cwd=gateware, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wrong = check(SocHost(connect(), packing))
    finally:
        simulation.terminate()
        simulation.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
