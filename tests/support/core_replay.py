"""The driver on the golden core, and the same commands on the hardware in Amaranth's simulator."""

from verif.amaranth_bench import checker, quiet, receive, send, simulate
from weft.config import Config
from weft.host import Accelerator
from weft.host.emulated import GoldenTransport
from weft.host.transport import Commands
from weft.hw.core import Core

__all__ = ["replayed_matmul"]

LIMIT = 20_000  # cycles


class RecordingTransport(GoldenTransport):
    """A golden core that keeps all commands and all results."""

    def __init__(self, config: Config):
        super().__init__(config)
        self.commands, self.packets = bytearray(), []

    def send(self, commands):
        commands = list(commands)
        self.commands += Commands(self._config, commands).encode()
        super().send(commands)

    def receive(self, timeout):
        self.packets.append(super().receive(timeout))
        return self.packets[-1]


def replayed_matmul(config: Config, a, b):
    """``a @ b`` by the driver on the golden core.

    Raises AssertionError if the hardware gives other result words for the same commands, or takes
    other cycles than the cycle model predicts.
    """
    transport = RecordingTransport(config)
    with Accelerator(transport) as accelerator:
        result = accelerator.matmul(a, b)
        predicted = accelerator.counters()["busy"]
    size = config.bytes_out
    data = b"".join(packet.data for packet in transport.packets)
    expected = [
        int.from_bytes(data[start : start + size], "little") for start in range(0, len(data), size)
    ]
    words, cycles = _run(config, bytes(transport.commands), len(expected))
    assert words == expected
    assert cycles == predicted
    return result


def _run(config, commands, count):
    """The ``count`` result words of commands on the hardware, and the cycles in which it works."""
    core, size = Core(config), config.bytes_in
    words, busy = [], []

    async def source(ctx):
        await send(ctx, core.commands, [
            int.from_bytes(commands[start : start + size], "little")
            for start in range(0, len(commands), size)
        ])

    async def sink(ctx):
        words.extend(word["data"] for word in await receive(ctx, core.results, count))
        await quiet(ctx, core.results)

    async def watch(ctx):
        while True:
            busy.append((await ctx.tick().sample(core.activity.busy))[-1])

    simulate(core, source, sink, background=[checker(core.results, "results"), watch], limit=LIMIT)
    return words, sum(busy)
