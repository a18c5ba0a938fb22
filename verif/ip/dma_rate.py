"""Bench of the rate of an IP core with DMA: products of 128 x 128 x 128, back to back."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

from verif.dma_scenario import DmaScenario
from verif.ip.dma import start, submit
from weft.commands import JobFlag
from weft.config import PAGE_WORDS
from weft.descriptors import EDGE, ElementOrder
from weft.sim.bench import PERIOD_NS

JOBS = 4
SIZE = 1 << 20  # bytes of the memory
LOSS = 0.02  # part of the ideal time that the engine may add
ORDERS = {
    "as_rows": (ElementOrder.K_MAJOR, ElementOrder.K_MINOR),
    "along_k": (ElementOrder.K_MAJOR, ElementOrder.K_MAJOR),
}


class FixedOrders(DmaScenario):
    """A scenario with a fixed order for each operand."""

    def load(self, side, *args):
        self.orders = (self.order_by_side[side],)
        super().load(side, *args)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(order=[*ORDERS])
async def products_back_to_back(dut, order):
    """The operands of the next job load during a job, so the array rarely waits."""
    rig, memory = await start(dut, size=SIZE)
    config, scenario = rig.config, FixedOrders(rig.config, size=SIZE, seed=1)
    scenario.order_by_side = ORDERS[order]
    a, b = rig.operands(EDGE, EDGE, EDGE)
    half = [words // PAGE_WORDS // 2 for words in (config.a_words, config.b_words)]
    for tag in range(JOBS):
        pages = [page * (tag % 2) for page in half]
        feeds = JobFlag.FEED_A | JobFlag.FEED_B
        scenario.multiply(a, b, pages=pages, feed=(0, 1), flags=feeds, tag=tag)
    scenario.end()
    memory.ram.memory[:] = scenario.memory
    await submit(rig, scenario.descriptors)
    times = []
    while len(times) < JOBS:
        if await rig.read("jobs_done") > len(times):
            times.append(get_sim_time("ns") / PERIOD_NS)
        await ClockCycles(rig.clock, 10)
    assert memory.ram.memory == scenario.expected
    ideal = EDGE**3 / config.peak
    cycles = (times[-1] - times[0]) / (JOBS - 1)
    print(
        f"{config.name}, {order}: {cycles:.0f} cycles a product of {EDGE}^3, ideal {ideal:.0f}:"
        f" {cycles / ideal - 1:.2%} lost; {memory.bursts} bursts", flush=True
    )
    assert cycles <= (1 + LOSS) * ideal
