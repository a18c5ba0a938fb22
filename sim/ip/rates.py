"""What the bus costs: steady state of equal jobs, 128 x 128 x 128, against the bare core's."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from weft.commands import JobFlag
from weft.cycles import predict
from weft.geometry import operands
from weft.sim.ip.ip_testbench import IpTestbench
from weft.sim.scenario import Scenario

SIZE = 128
JOBS = 4
LOSS = 0.02  # of the bare core's rate, at most


class Recorded(Scenario):
    """A program that keeps its commands."""

    def __init__(self, config):
        self.commands = []
        super().__init__(config)

    def _header(self, command):
        self.commands.append(command)
        super()._header(command)


class Strobes:
    """A Wishbone master without a pause between accesses, all of them in one cycle."""

    def __init__(self, dut, *, pipelined):
        self.dut, self.pipelined = dut, pipelined

    def pause(self, seed, odds):
        assert not odds, "this one never pauses"

    async def run(self, operations):
        """Of (address, value or None), what each was answered."""
        dut, found, given = self.dut, [], 0
        dut.wb_cyc_i.value = dut.wb_stb_i.value = 1
        dut.wb_sel_i.value = 15
        while len(found) < len(operations):
            if given < len(operations):
                address, value = operations[given]
                dut.wb_adr_i.value = address // 4
                dut.wb_we_i.value = int(value is not None)
                dut.wb_dat_i.value = value or 0
            else:
                dut.wb_stb_i.value = 0
            await RisingEdge(dut.wb_clk_i)
            answered = int(dut.wb_ack_o.value)
            assert not int(dut.wb_err_o.value)
            if answered:
                found.append(int(dut.wb_dat_o.value))
            given += not int(dut.wb_stall_o.value) if self.pipelined else answered
        dut.wb_cyc_i.value = dut.wb_stb_i.value = 0
        return found

    async def write(self, address, value):
        await self.run([(address, value)])
        return True

    async def read(self, address):
        return (await self.run([(address, None)]))[0], True

    async def write_all(self, address, values):
        await self.run([(address, value) for value in values])
        return True

    async def read_all(self, address, count):
        return await self.run([(address, None)] * count)


async def through_windows(rig, scenario, ended):
    """Feed and drain by turns, as much at once as there is; when jobs end goes to ``ended``."""
    parts, at = rig.parts(scenario.words), rig.addresses
    taken = [[] for _ in scenario.expected_results]
    job = 0
    while job < len(taken):
        if parts and (room := await rig.read("cmd_fifo_free")):
            assert await rig.master.write_all(at["commands"], parts[:room])
            parts = parts[room:]
        level = await rig.level()
        if level["words"]:
            taken[job] += await rig.master.read_all(at["results"], level["words"])
            if level["complete"]:
                ended.append(cocotb.utils.get_sim_time("ns"))
                job += 1
    return [b"".join(word.to_bytes(4, "little") for word in words) for words in taken]


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def steady_state(dut):
    rig = await IpTestbench.start(dut)
    config = rig.config
    narrow = JobFlag.REQUANTIZE if config.requantize != "none" else JobFlag(0)
    scenario = Recorded(config)
    a, b = rig.operands(SIZE, SIZE, SIZE)
    pages = [side.panels(SIZE) * side.panel_pages(SIZE) for side in operands(config)]
    for n in range(2 * bool(narrow)):
        pitch = operands(config)[1].panel_pages(SIZE)
        column = 5, 1 << 30, -10, 0, 1, -128, 127
        scenario.load_parameters([column] * SIZE, page=n * pages[1], pitch=pitch)
    for n in range(JOBS):
        where = tuple(n % 2 * size for size in pages)
        scenario.multiply(a, b, pages=where, feed=(0, 1), flags=narrow, tag=n)
    ended = []
    if rig.ip.bus == "stream":
        cocotb.start_soon(rig.send(scenario.words))
        for answer in scenario.expected_results:
            answer.check(await rig.take())
            ended.append(cocotb.utils.get_sim_time("ns"))
    else:
        if rig.wishbone:
            rig.master = Strobes(dut, pipelined=rig.ip.pipelined)
        for answer, data in zip(
            scenario.expected_results, await through_windows(rig, scenario, ended), strict=True
        ):
            words = np.frombuffer(data, f"<u{config.bytes_out}").tolist()
            assert words == [value for value, _ in answer.words]
    found = np.diff(ended)[1:].mean() / 10
    ends = predict(config, scenario.commands).ends
    bare = np.diff(ends)[1:].mean()
    peak = SIZE**3 / (config.rows * config.cols * config.depth)
    print(f"interval {found} cycles, bare {bare}: {peak / found:.2%} and {peak / bare:.2%} of peak")
    assert found <= bare * (1 + LOSS)
