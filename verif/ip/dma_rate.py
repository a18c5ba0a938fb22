"""Bench of the rate of an IP core with DMA: products of 128 x 128 x 128, back to back."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

from verif.dma_scenario import DmaScenario
from verif.ip.dma import start, submit
from weft.commands import LoadFlag
from weft.descriptors import EDGE, ElementOrder
from weft.sim.bench import PERIOD_NS
from weft.sim.scenario import A, B

JOBS = 4
SIZE = 1 << 20  # bytes of the memory
LOSS = 0.02  # part of the ideal time that the engine may add
ORDERS = {
    "as_rows": (ElementOrder.K_MAJOR, ElementOrder.K_MINOR),
    "along_k": (ElementOrder.K_MAJOR, ElementOrder.K_MAJOR),
}


class FixedOrders(DmaScenario):
    """A scenario with a fixed order for each operand."""

    def load_lines(self, load, matrix):
        self.orders = (self.order_by_side[load.operand],)
        super().load_lines(load, matrix)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(order=[*ORDERS])
async def products_back_to_back(dut, order):
    """The operands of the next job load during a job, so the array rarely waits."""
    rig, memory = await start(dut, size=SIZE)
    config, scenario = rig.config, FixedOrders(rig.config, size=SIZE, seed=1)
    scenario.order_by_side = ORDERS[order]
    matrices = scenario.operands(EDGE, EDGE, EDGE)
    for n in range(JOBS):  # in turn in both halves of the buffers
        placed = [
            scenario.place(side, matrices[side], n % 2 * scenario.geometry[side].pages // 2, gap=0)
            for side in (A, B)
        ]
        scenario.job(*placed, feed=(A, B))
        scenario.load(*placed, flags=LoadFlag.FEED)
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
