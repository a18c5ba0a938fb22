"""Bench of the Verilog of an SDRAM controller: AXI4 of a third party, a model of the chip."""

import logging
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Combine, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiResp

from verif.ip.pauses import pauses
from verif.sdram_bench import short
from verif.sdram_chip import SdramChipModel

__all__ = ["CHIP", "DATA_BYTES", "MHZ", "SHELL"]

MHZ, DATA_BYTES = 125, 16
CHIP = short(mhz=MHZ, columns=128, interval=150)
BURST = 16 * DATA_BYTES
# The master needs pins for IDs. The controller has none, and answers in order: all IDs are 0.
SHELL = """
module shell(input aclk, input aresetn,
  input s_axi_awid, input s_axi_arid, output s_axi_bid, output s_axi_rid, {ports});
  assign s_axi_bid = 0; assign s_axi_rid = 0;
  weft_sdram dut(.aclk(aclk), .aresetn(aresetn), {connections});
endmodule
"""


async def chip(dut, model):
    """Be the chip at the pins."""
    names = "cke", "cs_n", "ras_n", "cas_n", "we_n", "ba", "a", "dqm", "dq_o", "dq_oe"
    pins = [getattr(dut, f"sdram_{name}") for name in names]
    while True:
        await RisingEdge(dut.aclk)
        dut.sdram_dq_i.value = model.edge(*(int(pin.value) for pin in pins))


async def started(dut, odds):
    """The master, after a reset; channels pause in a cycle with probability ``odds``."""
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    cocotb.start_soon(Clock(dut.aclk, 8, "ns").start())
    dut.aresetn.value, dut.sdram_dq_i.value = 0, 0
    await ClockCycles(dut.aclk, 4)
    bus = AxiBus.from_prefix(dut, "s_axi")
    master = AxiMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False, max_burst_len=16)
    write, read = master.write_if, master.read_if
    channels = (
        write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
    )
    for seed, channel in enumerate(channels if odds else ()):
        channel.set_pause_generator(pauses(seed, odds))
    await ClockCycles(dut.aclk, 2)
    cocotb.start_soon(chip(dut, SdramChipModel(CHIP, mhz=MHZ)))
    dut.aresetn.value = 1
    return master


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(odds=[0, 0.4])
async def bytes_are_kept(dut, odds):
    """Writes from a beat on, of any length within 16 beats, and reads of what was written."""
    master, rng = await started(dut, odds), random.Random(cocotb.RANDOM_SEED)
    size = 12 * BURST
    expected = bytearray(rng.randbytes(size))
    for start in range(0, size, BURST):
        await master.write(start, expected[start : start + BURST], awid=0)
    for _ in range(30):
        start = rng.randrange(size // DATA_BYTES) * DATA_BYTES
        length = rng.randrange(1, BURST - start % BURST + 1)
        data = rng.randbytes(length)
        answer = await master.write(start, data, awid=0)
        assert answer.resp == AxiResp.OKAY
        expected[start : start + length] = data
    places = [(n * BURST, BURST) for n in range(12)]
    starts = rng.sample(range(0, size, DATA_BYTES), 30)
    places += [(n, rng.randrange(1, BURST - n % BURST + 1)) for n in starts]

    async def read(start, length):
        answer = await master.read(start, length, arid=0)
        assert answer.resp == AxiResp.OKAY and answer.data == expected[start : start + length]

    for n in range(0, len(places), 3):
        await Combine(*(cocotb.start_soon(read(*place)) for place in places[n : n + 3]))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def other_bursts_are_refused(dut):
    """Narrow beats, starts within a beat, bursts across 16 beats: SLVERR; nothing is written."""
    master = await started(dut, 0)
    await master.write(0, bytes(2 * BURST), awid=0)
    for start, length, size in ((0, 8, 2), (5, 11, None), (BURST - 16, 32, None)):
        answer = await master.write(start, b"\xff" * length, awid=0, size=size)
        assert answer.resp == AxiResp.SLVERR
        answer = await master.read(start, length, arid=0, size=size)
        assert answer.resp == AxiResp.SLVERR
    for start in (0, BURST):
        answer = await master.read(start, BURST, arid=0)
        assert (answer.resp, answer.data) == (AxiResp.OKAY, bytes(BURST))
