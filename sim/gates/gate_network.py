"""The test of a gate-level network core: one inference, its result against golden."""

import struct

import numpy as np

from weft.frames import FrameType
from weft.host.link import Frame
from weft.host.network_driver import NetworkDriver
from weft.host.network_frames import NetworkFrames
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.models.network_core.program import NetworkCoreProgram
from weft.registers import IDENTITY, kind_of
from weft.sim.gates.gate_test import TIMEOUT_CYCLES, GateSim, GateSimError, GateTest

__all__ = ["GateTransport", "check_network"]


class GateTransport(NetworkFrames):
    """The frames of a network core over the serial line of a `GateSim`, one at a time.

    `weft.host.network_driver.NetworkDriver` and `weft.host.language_driver.LanguageDriver` take it
    in place of a `BoardTransport`. Nothing is
    sent again: the line loses no bytes. Methods raise GateSimError if an answer is missing or
    wrong; the time limits count in the cycles of `GateSim`, so the argument ``timeout`` has no
    effect.

    Parameters
    ----------
    gates : GateSim
    list_cycles : int
        Cycles of a list, at most.
    ignored : container of FrameType
        Frames that come unasked, and tell nothing new.
    """

    name = "the gates"

    def __init__(self, gates: GateSim, list_cycles: int, ignored=()):
        self._gates = gates
        self._ignored = ignored
        self._list_cycles = list_cycles
        self._sequence = 0  # of the latest frame with an acknowledgement, from power-on

    def kind_of_core(self, timeout: float) -> str:
        """Return the kind of the core; ValueError if its registers tell none."""
        return kind_of(self.read(0, len(IDENTITY), timeout))

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return ``count`` registers from ``address`` on."""
        data = self.request(
            FrameType.READ, struct.pack("<HH", address, count), FrameType.REGISTERS, timeout
        )
        return list(struct.unpack(f"<{len(data) // 4}I", data))

    def abort(self, timeout: float) -> None:
        """End the running list."""
        self.request(FrameType.ABORT, b"", FrameType.ABORTED, timeout)

    def restart_lists(self, timeout: float) -> None:
        """End the running list; the sequence numbers go on."""
        self.abort(timeout)

    def post(self, frame_type: FrameType, payload: bytes) -> int:
        """Send a frame and wait for its acknowledgement; return its sequence number."""
        self._sequence = (self._sequence + 1) % 256
        self._exchange(frame_type, payload, FrameType.ACK, self._sequence)
        return self._sequence

    def flush(self, timeout: float) -> None:
        """Do nothing: `post` has waited."""

    def request(
        self, frame_type: FrameType, payload: bytes, answer_type: FrameType, timeout: float
    ) -> bytes:
        """Send a frame; return the payload of its answer."""
        return self._exchange(frame_type, payload, answer_type, 0)

    def receive_list(self, number: int) -> Frame:
        """Return the answer to the START frame with this sequence number."""
        return self._receive(FrameType.DONE, number, TIMEOUT_CYCLES + self._list_cycles)

    def close(self) -> None:
        """Do nothing: the context of the `GateSim` ends the simulation."""

    def _exchange(self, frame_type, payload, answer_type, number):
        self._gates.send(Frame(frame_type, number, payload))
        return self._receive(answer_type, number).payload

    def _receive(self, kind, number, cycles=TIMEOUT_CYCLES):
        frame = self._gates.receive(cycles)
        while frame.type in self._ignored:
            frame = self._gates.receive(cycles)
        if (frame.type, frame.sequence) != (kind, number):
            raise GateSimError(
                f"expected {kind.name} {number}, received a frame of type {frame.type:#x}"
                f" {frame.sequence}: {frame.payload[:40]!r}"
            )
        return frame


def check_network(
    gates: GateSim, program: NetworkCoreProgram, *, seed: int, say=lambda text: None
) -> GateTest:
    """Run one inference of a network on ``gates``, and compare each byte of its result with golden.

    Parameters
    ----------
    gates : GateSim
    program : NetworkCoreProgram
    seed : int
        Seed of the input.
    say : callable
        Called with a line of text after each step that has passed.

    Raises
    ------
    GateSimError
        If the core does not have the NetworkCoreConfig of the program, or a byte differs.
    """
    rng = np.random.default_rng(seed)
    tensor = program.tensors[program.inputs[0]]
    limits = np.iinfo(tensor.dtype)
    x = rng.integers(limits.min, limits.max, tensor.shape, tensor.dtype, endpoint=True)
    with program.open("golden") as golden:
        wanted = golden(x)
    try:
        transport = GateTransport(gates, 2 * program.cycles)
        with program.open(NetworkDriver(transport, program.config)) as session:
            say(f"registers describe the core; the lists are loaded, {gates.cycles:,} cycles")
            y = session(x)
    except (AcceleratorError, TransportError) as error:
        raise GateSimError(str(error)) from error
    if not np.array_equal(y, wanted):
        raise GateSimError(
            f"{program.name}: {np.count_nonzero(y != wanted)} of {y.size} values of the result"
            " differ from golden"
        )
    say(f"{program.name}: the result equals golden, {gates.cycles:,} cycles after power-on")
    macs = sum(layer.macs for layer in program.layers)
    return GateTest(jobs=program.jobs, macs=macs, results=y.nbytes)
