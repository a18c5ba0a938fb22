"""Measure the time of networks over USB, at the pins of a simulated board.

    WEFT_NETWORKS=folder make usb-bench

The folder has the networks of MLPerf Tiny. Exit code 1 if a result differs from TensorFlow Lite
Micro. Full speed takes so long that a small core takes the place of the network's.
"""

import struct
import sys
from dataclasses import dataclass

import numpy as np

from tools import results
from tools.network_tables import networks_folder
from verif.usb_host import ACK, NAK, NYET, PING, SOF, UsbHost, token
from weft.boards.designs import NETWORKS_85F
from weft.config import Config
from weft.frames import FrameType
from weft.host.link import Frame, FrameDecoder, SendWindow
from weft.host.network_driver import NetworkDriver
from weft.host.network_frames import NetworkFrames
from weft.models.loading import load
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import NetworkState
from weft.network_core.register_map import describe
from weft.sim.usb_board import UsbWire

__all__ = ["LIST_END", "IdealHost", "finish", "measure"]

ABOUT = """\
One inference of networks of MLPerf Tiny, at the pins of simulated boards, for the core of 8 x 8 x 8
of the LFE5U-85F. **This is simulated, and not measured on a board.** The host is ideal: its
software takes no time, and the bus is never idle while a packet can be sent. Packets have the times
of USB 2.0, with SOF, handshakes, and a poll of the device after each packet to it.

**Time** begins with the first packet of the input, and ends with the last one of the result.
**Core** is the time of the list. **A second** is the rate of inferences that follow each other.
**Goal** is the largest time that the project accepts.

At high speed the core, the link and the USB device are those of a bitstream, the program is loaded
before, and each result equals TensorFlow Lite Micro. At full speed the simulation has link, host
port and device of a bitstream with a small core, and the frames of the same inference. Its list
ends at once. The exact cycles of the list and the bytes of the result on the bus are added."""
HEADS = """\
| network | USB | clock | bytes sent | bytes received | core | time | a second | goal |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""
INFERENCES = 3
_SMALL = NetworkCoreConfig(
    array=Config(
        rows=1, cols=2, depth=2, lanes=1, requantize="tflite", activation="none",
        multiplier="plain",
    ),
    words=64, b_words=4, lines=4, read_vectors=2,
)
_FULL_SPEED_BYTE = 8 * 7 / 6 / 12e6  # seconds at most: a bit is stuffed after six
ENDPOINT = 1
LIST_END = "list end"
_STATUS = struct.Struct("<II")


@dataclass(frozen=True)
class UsbRun:
    """A network over USB; ``goal`` is in milliseconds."""

    file: str
    name: str
    high: bool
    goal: float


RUNS = [
    UsbRun("kws_int8", "kws", True, 0.5), UsbRun("vww_96_int8", "vww", True, 1.5),
    UsbRun("kws_int8", "kws", False, 5), UsbRun("vww_96_int8", "vww", False, 35),
]


class _Recorder(NetworkFrames):
    """A connection to a network core that records frames; each list ends with a result of zeros.

    ``script`` has types and payloads of frames; None where the host waits for all
    acknowledgements, `LIST_END` where it waits for DONE.
    """

    def __init__(self, config, result_bytes):
        self._registers, self._result = describe(config), bytes(result_bytes)
        self.script = []

    def read(self, address, count, timeout):
        return self._registers[address : address + count]

    def post(self, frame_type, payload):
        self.script.append((frame_type, payload))
        return 0

    def flush(self, timeout):
        self.script.append(None)

    def receive_list(self, number):
        self.script.append(LIST_END)
        return Frame(FrameType.DONE, number, _STATUS.pack(NetworkState.DONE, 0) + self._result)

    def restart_lists(self, timeout):
        """Do nothing: a simulated board has just started."""

    def abort(self, timeout):
        """Do nothing: no list runs."""

    def close(self):
        """Do nothing: there is no connection."""


class IdealHost:
    """A host whose software takes no time, at the endpoints of a board.

    Attributes
    ----------
    sent, received : int
        Bytes of frames.
    naks : int
        Packets to the device that it did not take.
    """

    def __init__(self, wire, *, high):
        self.wire, self.usb = wire, UsbHost(wire)
        self.sent = self.received = self.naks = 0
        self._packet, self._frame = (512, 125e-6) if high else (64, 1e-3)
        self._longest = 12e-6 if high else 70e-6  # seconds of a transaction
        self._high, self._ping, self._frames = high, False, 0
        self._window, self._decoder = SendWindow(1.0), FrameDecoder()
        self._window.start(1)
        self._packets, self._done = [], []

    async def attach(self):
        """Give the device an address and its configuration."""
        await self.usb.attach()
        self._start = self.wire.time

    async def play(self, script):
        """Send frames as a script says; return the payloads of DONE."""
        lists = []
        for entry in script:
            if entry is None:
                while not self._window.empty:
                    await self._turn()
            elif entry == LIST_END:
                while not self._done:
                    await self._turn()
                lists.append(self._done.pop(0))
            else:
                self._window.append(*entry)
        return lists

    async def _turn(self):
        """A packet to the device if there is one, then a poll."""
        frame = self._window.next_frame(self.wire.time) if not self._packets else None
        if frame:
            self._packets = [
                frame[n : n + self._packet] for n in range(0, len(frame), self._packet)
            ]
        if self._packets:
            await self._keep_time()
            await self._send(self._packets[0])
        await self._keep_time()
        data = await self.usb.try_in(ENDPOINT)
        if not isinstance(data, bytes):
            return
        self.received += len(data)
        for item in self._decoder.feed(data):
            if item.type == FrameType.ACK:
                self._window.acknowledge(item.sequence, self.wire.time)
            elif item.type == FrameType.DONE:
                self._done.append(item.payload)
            else:
                raise SystemExit(f"the board sent {item}")

    async def _send(self, packet):
        if self._ping:
            await self.wire.send(token(PING, self.usb.address, ENDPOINT))
            answer = await self.usb.receive()
            self._ping = answer[0] != ACK
            return
        answer = await self.usb.try_out(ENDPOINT, packet)
        if answer in (ACK, NYET):
            self.usb.flip(ENDPOINT, 1)
            del self._packets[0]
            self.sent += len(packet)
        self.naks += answer == NAK
        self._ping = self._high and answer in (NAK, NYET)

    async def _keep_time(self):
        """Send SOF when a frame of USB begins; no transaction crosses its end."""
        end = self._start + (self._frames + 1) * self._frame
        left = end - self.wire.time
        if left < self._longest:
            if left > 0:
                await self.wire.idle(left)
            self._frames += 1 + max(0, int(-left / self._frame))
            await self.wire.send(token(SOF, self._frames % 2048))


def finish(coroutine):
    """Run a coroutine that never waits; return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("the coroutine must not wait")


def measure(run, folder):
    """Return the times of inferences, the last one's bytes sent and received, and its cycles.

    The first inference also loads what stays in the buffers.

    Raises SystemExit if a result differs from TensorFlow Lite Micro.
    """
    design = NETWORKS_85F
    program = load(folder / f"{run.file}.tflite").compile(design.config)
    vectors = np.load(folder / f"{run.file}.npz")
    recorder = _Recorder(design.config, program.segments[-1].result_bytes)
    session = program.open(NetworkDriver(recorder, design.config))
    core = design.config if run.high else _SMALL
    wire = UsbWire(core, high=run.high, clock=design.clock, say=print)
    host = IdealHost(wire, high=run.high)
    finish(host.attach())
    if run.high:
        finish(host.play(recorder.script))
    times = []
    for number in range(INFERENCES):
        recorder.script.clear()
        case = number % len(vectors["model_in"])
        session(vectors["model_in"][case])
        start, sent, received = wire.time, host.sent, host.received
        *_, done = finish(host.play(recorder.script))
        times.append(wire.time - start)
        cycles = _STATUS.unpack_from(done)[1]
        if not run.high:
            result = program.segments[-1].result_bytes
            times[-1] += (program.cycles - cycles) / design.clock / 1e6 + result * _FULL_SPEED_BYTE
            host.received, cycles = host.received + result, program.cycles
            continue
        expected = vectors["model_out_tflm"][case].reshape(-1)
        if not np.array_equal(np.frombuffer(done, np.int8)[_STATUS.size :], expected):
            raise SystemExit(f"{run.name}: the result differs from TensorFlow Lite Micro")
    wire.close()
    return times, host.sent - sent, host.received - received, cycles


def rows(folder):
    """Yield the lines of the table."""
    for run in RUNS:
        times, sent, received, cycles = measure(run, folder)
        clock, rate = NETWORKS_85F.clock, (len(times) - 1) / sum(times[1:])
        yield (
            f"| {run.name} | {'high' if run.high else 'full'} speed | {clock:g} MHz | {sent:,}"
            f" | {received:,} | {cycles / clock / 1e3:.3f} ms | {1e3 * times[-1]:.3f} ms"
            f" | {rate:,.1f} | {run.goal:g} ms |\n"
        )


def main() -> int:
    folder = networks_folder()
    if folder is None:
        return 2
    lines = []
    for line in rows(folder):
        lines.append(line)
        print(line, end="", flush=True)
    table = results.table(HEADS + "".join(lines), title="End to end at the pins", about=ABOUT)
    print(results.save(
        "usb", [table], title="Over USB", command="make usb-bench", about="",
        of=["tools.usb_bench"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
