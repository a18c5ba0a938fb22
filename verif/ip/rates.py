"""The steady-state rate of 128 x 128 x 128 jobs over a bus, compared with the bare core's."""

import cocotb
import numpy as np

from verif.ip.ip_testbench import IpTestbench
from weft.commands import JobFlag, LoadFlag
from weft.cycles import predict
from weft.sim.scenario import A, B, Scenario, result_words

SIZE = 128
JOBS = 4
MAX_LOSS = 0.02  # of the rate of the bare core


class Recorded(Scenario):
    """A scenario that keeps its commands."""

    def __init__(self, config):
        self.commands = []
        super().__init__(config)

    def submit(self, job):
        self.commands.append(job)
        super().submit(job)

    def load_payload(self, load, payload):
        self.commands.append(load)
        super().load_payload(load, payload)


async def through_fifo_ports(tb, scenario):
    """Write commands and read results in turns; returns results and end times of the jobs."""
    parts, addresses = tb.parts(scenario.words), tb.addresses
    received = [[] for _ in scenario.scoreboards]
    times = []
    while len(times) < len(received):
        if parts and (free := await tb.read("cmd_fifo_free")):
            assert await tb.master.write_all(addresses["cmd_fifo"], parts[:free])
            parts = parts[free:]
        level = await tb.result_level()
        if level["words"]:
            received[len(times)] += await tb.master.read_all(
                addresses["result_fifo"], level["words"]
            )
            if level["complete"]:
                times.append(cocotb.utils.get_sim_time("ns"))
    return [b"".join(word.to_bytes(4, "little") for word in words) for words in received], times


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def steady_state(dut):
    tb = await IpTestbench.start(dut)
    config = tb.config
    flags = JobFlag.REQUANTIZE if config.requantize != "none" else JobFlag(0)
    scenario = Recorded(config)
    matrices = scenario.operands(SIZE, SIZE, SIZE)
    pages = [side.panels(SIZE) * side.panel_pages(SIZE) for side in scenario.geometry]
    halves = [  # the next operands are loaded into the other half of the buffers
        [scenario.place(side, matrices[side], n * pages[side], gap=0) for side in (A, B)]
        for n in range(2)
    ]
    for _, b in halves * bool(flags):
        scenario.load_parameters(b, [(5, 1 << 30, -10, 0, 1, -128, 127)] * SIZE)
    for n in range(JOBS):
        scenario.job(*halves[n % 2], feed=(A, B), flags=flags)
        scenario.load(*halves[n % 2], flags=LoadFlag.FEED)
    times = []
    if tb.ip.has_streams:
        cocotb.start_soon(tb.send(scenario.words))
        for scoreboard in scenario.scoreboards:
            scoreboard.check(await tb.receive())
            times.append(cocotb.utils.get_sim_time("ns"))
    else:
        tb.master = tb.master.back_to_back()
        results, times = await through_fifo_ports(tb, scenario)
        for scoreboard, data in zip(scenario.scoreboards, results, strict=True):
            scoreboard.check(result_words(data, config.bytes_out, tag=scoreboard.tag, status=0))
    interval = np.diff(times)[1:].mean() / 10
    bare = np.diff(predict(config, scenario.commands).ends)[1:].mean()
    peak = SIZE**3 / (config.rows * config.cols * config.depth)
    print(
        f"interval {interval} cycles, bare {bare}: {peak / interval:.2%} and {peak / bare:.2%}"
        " of peak"
    )
    assert interval <= bare * (1 + MAX_LOSS)
