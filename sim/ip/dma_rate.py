"""How fast an IP core with a DMA engine is: products of 128 x 128 x 128, back to back."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

from weft.commands import JobFlag
from weft.config import PAGE_WORDS
from weft.descriptors import EDGE, ElementOrder
from weft.sim.bench import PERIOD_NS
from weft.sim.dma_scenario import DmaScenario
from weft.sim.ip.dma import start, submit

JOBS = 4
SIZE = 1 << 20  # of the memory
LOSS = 0.02  # that the engine may cost
ORDERS = {
    "as_rows": (ElementOrder.K_MAJOR, ElementOrder.K_MINOR),
    "along_k": (ElementOrder.K_MAJOR, ElementOrder.K_MAJOR),
}


class Steady(DmaScenario):
    """Both operands in the order that each is told."""

    def load(self, side, *more):
        self.orders = (self.by_side[side],)
        super().load(side, *more)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(order=[*ORDERS])
async def products_back_to_back(dut, order):
    """The next job's operands come while one is computed; so the array hardly ever waits."""
    rig, memory = await start(dut, size=SIZE)
    config, found = rig.config, Steady(rig.config, size=SIZE, seed=1)
    found.by_side = ORDERS[order]
    a, b = rig.operands(EDGE, EDGE, EDGE)
    half = [words // PAGE_WORDS // 2 for words in (config.a_words, config.b_words)]
    for tag in range(JOBS):
        pages = [page * (tag % 2) for page in half]
        fed = JobFlag.FEED_A | JobFlag.FEED_B
        found.multiply(a, b, pages=pages, feed=(0, 1), flags=fed, tag=tag)
    found.end()
    memory.ram.memory[:] = found.memory
    await submit(rig, found.descriptors)
    times = []
    while len(times) < JOBS:
        if await rig.read("jobs_done") > len(times):
            times.append(get_sim_time("ns") / PERIOD_NS)
        await ClockCycles(rig.clock, 10)
    assert memory.ram.memory == found.expected
    ideal = EDGE**3 / config.peak
    taken = (times[-1] - times[0]) / (JOBS - 1)
    print(
        f"{config.name}, {order}: {taken:.0f} cycles a product of {EDGE}^3, {ideal:.0f} at best:"
        f" {taken / ideal - 1:.2%} lost; {memory.bursts} bursts", flush=True
    )
    assert taken <= (1 + LOSS) * ideal
