"""A simulated network core: its memory, and the execution of lists, in whole vectors."""

import struct
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from weft.host.transport import TransportTimeout
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming
from weft.network_core.descriptors import ON_CHIP, ListError, ListReport, NetworkState, join
from weft.sim import build, verilated
from weft.sim.model_process import ModelProcess

__all__ = [
    "AXI_MEMORIES", "AxiTiming", "HostTraffic", "NetworkSimulation", "SimulatedOutcome",
    "SimulatedRunner", "network_model",
]


HARNESS = Path(__file__).with_name("network.cpp")
_LIMIT = 5_000_000  # cycles in which a list must end
AXI_MEMORIES = 2  # the AXI4 memory has space for so many program memories


@dataclass(frozen=True)
class AxiTiming:
    """The behaviour of the simulated memory behind AXI4.

    Attributes
    ----------
    latency : int
        Cycles from the address of a burst to its first beat, and from the last beat of a written
        burst to its response; at least 1.
    period : int
        Cycles from beat to beat, times 256; at least 256.
    error_first, error_bytes : int
        Area whose beats are answered with ``response``.
    response : int
        2: SLVERR, 3: DECERR.
    silent : int
        1: the memory does not answer.
    """

    latency: int = 1
    period: int = 256
    error_first: int = 0
    error_bytes: int = 0
    response: int = 2
    silent: int = 0


@dataclass(frozen=True)
class HostTraffic:
    """Accesses of the host while a list runs.

    Attributes
    ----------
    rate : int
        In each cycle without a pending access, one starts with the probability ``rate / 256``.
    reads : pair of int
        First vector and vectors of the area that is read; the list must not write there.
    writes : pair of int
        First vector and vectors of the area that gets random bytes.
    seed : int
    """

    rate: int
    reads: tuple[int, int] = (0, 0)
    writes: tuple[int, int] = (0, 0)
    seed: int = 1


@dataclass(frozen=True)
class SimulatedOutcome:
    """How a list ended.

    Attributes
    ----------
    finished : bool
        False if the simulation reached its limit of cycles.
    state : NetworkState
    error : ListError
    job : int
        Jobs that have ended.
    cycles : int
        From START to the end, as the core reports them.
    result, result_bytes : int
        First vector and bytes of the result.
    simulated : int
        Cycles from START to the end, as the simulator counts them.
    reads, writes : int
        Accesses of the host while the list ran.
    wrong : int
        Reads of the host with wrong data.
    """

    finished: bool
    state: NetworkState
    error: ListError
    job: int
    cycles: int
    result: int
    result_bytes: int
    simulated: int
    reads: int
    writes: int
    wrong: int


def network_model(config: NetworkCoreConfig) -> Path:
    """The executable model of ``config``, from the cache or newly built.

    Raises weft.sim.tools.ToolError if a tool is missing or does not compile the model.
    """
    def verilog():
        from weft.hw import export
        from weft.hw.network_core.core import NetworkTop

        return export.to_verilog(NetworkTop(config), name="network", model=True)

    defines = [
        f"DEPTH={config.array.depth}", f"BANKS={config.banks}",
        f"BANK_BITS={(config.banks - 1).bit_length()}", f"VECTORS={config.vectors}",
        f"WRITABLE={config.banks * config.address_words if config.resident else config.vectors}",
        f"READ_VECTORS={config.read_vectors}", f"AXI_BYTES={AXI_MEMORIES * config.program_bytes}",
    ]
    return verilated.executable(
        "networks", f"network{config.array.name}", *build.design(verilog, repr(config)), HARNESS,
        top="network", defines=defines,
    )


class NetworkSimulation(ModelProcess):
    """A Verilated network core. It is a context manager; the simulation ends with it.

    Parameters
    ----------
    config : NetworkCoreConfig
    """

    def __init__(self, config: NetworkCoreConfig):
        super().__init__(network_model(config))
        self.config = config

    def write(self, data: bytes, first: int = 0):
        """Write ``data``, whole vectors, from vector ``first`` on."""
        count, rest = divmod(len(data), self.config.array.depth)
        if rest:
            raise ValueError(f"data must be whole vectors, not {len(data)} bytes")
        self._send(b"W" + struct.pack("<2I", first, count) + data)

    def read(self, first: int = 0, count: int | None = None) -> bytes:
        """The bytes of ``count`` vectors from ``first`` on; by default all that follow."""
        count = self.config.vectors - first if count is None else count
        self._send(b"R" + struct.pack("<2I", first, count))
        return self._receive(count * self.config.array.depth)

    def write_program(self, data: bytes, first: int = 0):
        """Write bytes to the memory behind AXI4, from byte ``first`` on."""
        self._send(b"P" + struct.pack("<2I", first, len(data)) + data)

    def read_program(self, first: int, count: int) -> bytes:
        """``count`` bytes of the memory behind AXI4, from byte ``first`` on."""
        self._send(b"Q" + struct.pack("<2I", first, count))
        return self._receive(count)

    def set_timing(self, timing: AxiTiming):
        """Set the behaviour of the memory behind AXI4."""
        self._send(b"M" + struct.pack("<6I", *astuple(timing)))

    def run(
        self, list_vector: int, log_vector: int, *, base: int = 0, limit: int | None = None,
        cycles: int = _LIMIT, abort: int = 0, traffic: HostTraffic | None = None,
        program_base: int = 0, program_limit: int | None = None, on_chip: bool = False,
    ) -> SimulatedOutcome:
        """Execute a list.

        Parameters
        ----------
        list_vector, log_vector : int
            Vectors of the list and of its log.
        base, limit : int
            First word of each bank that the list may use, and the first word beyond; by default
            all.
        cycles : int
            Cycles after which the simulation gives up.
        abort : int
            Cycle after START in which it is aborted; 0: no abort.
        traffic : HostTraffic, optional
        program_base : int
            First byte of the program memory.
        program_limit : int
            First word of each of its banks that the list may not use; by default none.
        on_chip : bool
            With a program memory: list and log lie in the memory on the chip.
        """
        if program_limit is None:
            program_limit = self.config.program_words
        limit = self.config.words if limit is None else limit
        traffic = traffic or HostTraffic(0)
        self._send(b"S" + struct.pack(
            "<15I", list_vector, log_vector, base, limit, cycles, abort, traffic.rate,
            *traffic.reads, *traffic.writes, traffic.seed, program_base, program_limit,
            on_chip,
        ))
        names = SimulatedOutcome.__dataclass_fields__
        values = dict(zip(names, struct.unpack("<11I", self._receive(44)), strict=True))
        return SimulatedOutcome(**values | {
            "finished": bool(values["finished"]), "state": NetworkState(values["state"]),
            "error": ListError(values["error"]),
        })


_CYCLES_PER_SECOND = 100_000  # at least, of any model on any machine


class SimulatedRunner:
    """A Verilated network core, at the ports of its memory.

    It has the methods of `weft.host.network_driver.NetworkDriver` that a session uses. A program
    memory has the default timing of the cycle model, until `set_timing` changes it.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    program_bytes : int
        Bytes of the program memory.
    program_base : int
        First byte of the program memory behind AXI4; 0 at first.
    uses : int
        Calls of `write`, `write_program` and `run`.
    """

    def __init__(self, config: NetworkCoreConfig):
        self.config = config
        self.uses = 0
        self.program_bytes = config.program_bytes
        self.program_base = 0
        self._core = NetworkSimulation(config)
        if config.program_words:
            timing = ProgramTiming()
            self.set_timing(AxiTiming(timing.latency, timing.period))

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0) -> None:
        """Write bytes to the memory."""
        self.uses += 1
        depth, banks = self.config.array.depth, self.config.banks
        first = join(address, banks)
        if not run:
            self._core.write(bytes(data), first)
            return
        size = -(-run // depth)
        row = join(row_step, banks) + (pixels - 1) * pitch
        values = np.frombuffer(data, np.uint8).reshape(-1, pixels, run)
        values = np.pad(values, ((0, 0), (0, 0), (0, size * depth - run)))
        if pitch == size:
            for y, line in enumerate(values):
                self._core.write(line.tobytes(), first + y * row)
            return
        for y, line in enumerate(values):
            for x, pixel in enumerate(line):
                self._core.write(pixel.tobytes(), first + y * row + x * pitch)

    def read(self, address, count) -> bytes:
        """Return ``count`` bytes of the memory."""
        depth = self.config.array.depth
        return self._core.read(join(address, self.config.banks), -(-count // depth))[:count]

    def write_program(self, address, data) -> None:
        """Write bytes to the program memory."""
        self.uses += 1
        self._core.write_program(bytes(data), self._byte(address))

    def read_program(self, address, count) -> bytes:
        """Return ``count`` bytes of the program memory."""
        return self._core.read_program(self._byte(address), count)

    def set_timing(self, timing: AxiTiming) -> None:
        """Set the behaviour of the memory behind AXI4."""
        self._core.set_timing(timing)

    def _byte(self, address):
        return self.program_base + join(address, self.config.banks) * self.config.array.depth

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()) -> ListReport:
        """Execute a list after ``writes``, and then call ``beside``.

        ``timeout`` limits the cycles of the list, too.

        Raises TransportTimeout if the list has not ended then.
        """
        self.uses += 1
        for write in writes:
            self.write(**write)
        banks, limit = self.config.banks, max(1, int(timeout * _CYCLES_PER_SECOND))
        outcome = self._core.run(
            join(list_address & ~ON_CHIP, banks), join(log_address, banks), cycles=limit,
            program_base=self.program_base, on_chip=bool(list_address & ON_CHIP),
        )
        if not outcome.finished:
            raise TransportTimeout(f"the list did not end within {limit:,} cycles")
        result = b""
        if outcome.error == ListError.NONE and outcome.result_bytes:
            vectors = -(-outcome.result_bytes // self.config.array.depth)
            result = self._core.read(outcome.result, vectors)[: outcome.result_bytes]
        if beside:
            beside()
        return ListReport(outcome.error, outcome.job, result, outcome.cycles)

    def close(self) -> None:
        """End the simulation."""
        self._core.__exit__()
