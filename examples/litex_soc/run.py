"""Networks on a core in a simulated LiteX SoC: python examples/litex_soc/run.py [NETWORK ...]

Each NETWORK is a TFLite file; the default is examples/digits_cnn.tflite. The SoC is the one of
ulx3s.py, with LiteDRAM's model of its SDRAM. The files are written to build/litex_soc. The exit
code is 1 if an output is wrong, and 2 if a file is refused. The difference from the predicted
cycles is printed, and is no error.
docs/litex.md explains each step.
"""

import subprocess
import sys
from pathlib import Path

from litedram.modules import MT48LC16M16
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import CSRStorage
from migen import Finish, If
from network_files import compiled_network, write_network
from verilated import SDRAM_ROW, compile_model, write_sdram
from weft_soc import CHIP, CLOCK, CPU, add_weft, builder, compile_firmware, make_kit, quiet

from results import print_difference

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 100_000_000  # clock cycles of a simulation
IO = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(
        Subsignal(f"{stream}_{name}", Pins(width))
        for stream in ("source", "sink")
        for name, width in (("valid", 1), ("ready", 1), ("data", 8))
    )),
]


class Simulation(LiteXModule):
    """A register whose write ends the simulation."""

    def __init__(self):
        self.finish = CSRStorage()
        self.sync += If(self.finish.re, Finish())


class SimulatedSoc(SoCCore):
    """The SoC in a simulation. `verilated.write_sdram` gives its SDRAM its contents."""

    def __init__(self, kit):
        platform = SimPlatform("SIM", [*IO])
        # The clock is the one of the board, because it decides the cycles of the SDRAM's timings.
        super().__init__(platform, CLOCK, uart_name="sim", **CPU)
        self.crg = CRG(platform.request("sys_clk"))
        self.simulation = Simulation()
        for option in ("NO_BUILD_TIME", "NO_DELAYS", "NO_PROMPT"):
            self.add_config(f"BIOS_{option}")
        self.add_constant("SDRAM_TEST_DISABLE")  # the test would overwrite the firmware
        self.add_constant("ROM_BOOT_ADDRESS", self.mem_map["main_ram"])
        module = MT48LC16M16(CLOCK, "1:1")
        # Only banks with contents read a file: so each bank gets some.
        self.sdrphy = SDRAMPHYModel(
            module=module, data_width=16, clk_freq=CLOCK, init=[0] * SDRAM_ROW
        )
        self.add_sdram("sdram", phy=self.sdrphy, module=module, l2_cache_size=8192)
        add_weft(self, kit)


def build_soc(folder: Path) -> tuple[SimulatedSoc, Path]:
    """Generate the core and the SoC, and compile its simulation: the SoC and the program."""
    output, kit = folder / "simulation", folder / "kit"
    print("the core, the SoC and its BIOS", flush=True)
    make_kit(kit)
    with quiet(folder / "simulation.log"):
        soc = SimulatedSoc(kit)
        builder(soc, output).build(run=False)
    print("the simulation", flush=True)
    return soc, compile_model(output / "gateware", kit)


def simulate(network: Path, code, soc: SimulatedSoc, program: Path, folder: Path) -> bool:
    """Run the firmware of a network with its compiled ``code``; whether its output is right."""
    c_files, gateware = folder / network.stem, folder / "simulation" / "gateware"
    predicted = write_network(network, code, c_files)
    with quiet(folder / "firmware.log"):
        firmware = compile_firmware(soc, folder / "simulation", folder / "kit", c_files)
    write_sdram(firmware.read_bytes(), gateware)
    text = _run(program, gateware)
    if "All output bytes are right." not in text:
        print(f"{network.name}: the output is wrong, or did not come in {LIMIT:,} cycles")
        return False
    print_difference(predicted, text)
    return True


def _run(program, folder):
    """Run the simulation, and print what its UART sends; that text."""
    lines = []
    with subprocess.Popen(
        [program, str(LIMIT)], cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
    ) as process:
        for line in process.stdout:
            lines.append(line.decode(errors="replace"))
            print(lines[-1], end="", flush=True)
    return "".join(lines)


def main(arguments) -> int:
    """Simulate each network; 0 if all bytes of all of them are right."""
    networks = [Path(name).resolve() for name in arguments]
    networks = networks or [ROOT / "examples" / "digits_cnn.tflite"]
    folder = ROOT / "build" / "litex_soc"
    codes = [compiled_network(network, CHIP) for network in networks]  # before any long work
    soc, program = build_soc(folder)
    right = [
        simulate(network, code, soc, program, folder)
        for network, code in zip(networks, codes, strict=True)
    ]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
