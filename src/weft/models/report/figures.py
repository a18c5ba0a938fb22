"""The data of a report: what each layer and the whole network cost, and what bounds them."""

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from weft.cycles.limits import CycleLimits
from weft.models.program import MatrixProduct

if TYPE_CHECKING:
    from weft.models.report.network_core import NetworkCoreReport

__all__ = ["Ceilings", "Energy", "LayerReport", "LayerStreams", "NetworkReport"]


@dataclass(frozen=True)
class LayerStreams:
    """Bytes that a step moves in one inference, and bytes that its results occupy.

    Attributes
    ----------
    commands : int
        On the command stream: headers, operands, parameters, padding.
    results : int
        On the result stream, with padding.
    a, b, parameters : int
        Operand words of A and of B, and parameters and tables, as the commands load them.
    sent, received : int
        On the serial port to and from the board: with frames and acknowledgements.
    drain : int
        Cycles in which the output stage is busy: chunks of results, times the cycles of a chunk.
    """

    commands: int = 0
    results: int = 0
    a: int = 0
    b: int = 0
    parameters: int = 0
    sent: int = 0
    received: int = 0
    drain: int = 0

    def __add__(self, other: "LayerStreams") -> "LayerStreams":
        return LayerStreams(*(
            getattr(self, f.name) + getattr(other, f.name) for f in fields(LayerStreams)
        ))

    def __mul__(self, times: int) -> "LayerStreams":
        return LayerStreams(*(getattr(self, f.name) * times for f in fields(LayerStreams)))


@dataclass(frozen=True)
class Energy:
    """Estimated energy of a step in nJ; `weft.models.report.energy` has the formula.

    Attributes
    ----------
    mac : float
        Multiplications and additions.
    operands : float
        Writes and reads of the operand buffers.
    results : float
        Writes and reads of the result buffer.
    """

    mac: float = 0.0
    operands: float = 0.0
    results: float = 0.0

    @property
    def total(self) -> float:
        return self.mac + self.operands + self.results

    def __add__(self, other: "Energy") -> "Energy":
        return Energy(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Energy)))


@dataclass(frozen=True, kw_only=True)
class LayerReport:
    """One step of a network.

    Attributes
    ----------
    operators : tuple of str
    name : str
    position : tuple of int
        Places of the operators in the file, from 0.
    on_weft : bool
    reason : str
        Why the host computes the step, or a part of it; empty if the core computes all of it.
    field : str
        Field of the Config, with a value, that would change this; may be empty.
    extra_bytes : int
        Bytes on the result stream that this field would save.
    remedy : str
        What would bring the work of the host to a core, for people; may be empty.
    method : str
        How the operator becomes products (`weft.models.program.Step.method`).
    products : tuple of MatrixProduct
    macs : int
    weights : str
        How the weights reach the core (`weft.models.program.Step.weights`).
    jobs, cycles, active, starved, stalled : int
        Predicted, as in `weft.models.program.Estimate`.
    utilization : float
        ``macs / (cycles * peak)``, in 0..1.
    limits : CycleLimits or None
        Cycles with ideal parts; None on the host.
    core_bound : str
        What bounds the core: ``compute``, ``load``, ``drain``, ``latency``; empty on the host.
    bound : str
        ``wire`` if the serial port takes longer than the core; else `core_bound`.
    streams : LayerStreams
    core_ms, wire_ms : float or None
        None if the target has no clock, or no serial port.
    resident : int
        Bytes of the B buffer that the weights of the step occupy between inferences.
    maps : int
        Bytes of all feature maps that are needed at the end of the step: its inputs, its outputs,
        and outputs of earlier steps that later steps read. They are in the host's memory.
    energy : Energy
    measured : int or None
        Measured cycles; None if they were not measured.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    on_weft: bool
    reason: str
    field: str
    extra_bytes: int
    remedy: str
    method: str
    products: tuple[MatrixProduct, ...]
    macs: int
    weights: str
    jobs: int
    cycles: int
    active: int
    starved: int
    stalled: int
    utilization: float
    limits: CycleLimits | None
    core_bound: str
    bound: str
    streams: LayerStreams
    core_ms: float | None
    wire_ms: float | None
    resident: int
    maps: int
    energy: Energy
    measured: int | None = None

    @property
    def operator(self) -> str:
        """The operators in one word: ``CONV_2D+LOGISTIC``."""
        return "+".join(self.operators)

    @property
    def results(self) -> int:
        """Results of all products."""
        return sum(product.m * product.n * product.count for product in self.products)


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of the parts of a core, and the sizes of its operand buffers.

    Attributes
    ----------
    peak : int
        MAC/cycle of the array.
    load : int
        Bytes/cycle of the command stream.
    drain : float
        Requantized results/cycle of full tiles; without an epilogue, sums/cycle.
    a_bytes, b_bytes : int
        Size of the operand buffers.
    """

    peak: int
    load: int
    drain: float
    a_bytes: int
    b_bytes: int


@dataclass(frozen=True, kw_only=True)
class NetworkReport:
    """A whole network on a target.

    Attributes
    ----------
    name, source, mode : str
        As in `weft.models.program.Program`.
    placement : str
        The placement line.
    target : str
        Name of the board or the Config.
    config : str
        Name of the Config: its size.
    config_hash : int
    clock : float or None
        MHz.
    baud : int or None
    ceilings : Ceilings
    layers : tuple of LayerReport
        In the order of execution.
    notes : tuple of str
    left_out : dict or None
        ``channels`` and ``macs`` that are not computed; None if the program computes all.
    against : NetworkReport, NetworkCoreReport or None
        The same network on another target, to compare with.
    """

    name: str
    source: str
    mode: str
    placement: str
    target: str
    config: str
    config_hash: int
    clock: float | None
    baud: int | None
    ceilings: Ceilings
    layers: tuple[LayerReport, ...]
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] | None = None
    against: "NetworkReport | NetworkCoreReport | None" = None

    @property
    def on_weft(self) -> tuple[LayerReport, ...]:
        """The layers on the core."""
        return tuple(layer for layer in self.layers if layer.on_weft)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def cycles(self) -> int:
        return sum(layer.cycles for layer in self.layers)

    @property
    def utilization(self) -> float:
        """MACs on the core, divided by its cycles and its peak; in 0..1."""
        macs = sum(layer.macs for layer in self.on_weft)
        return macs / (self.cycles * self.ceilings.peak) if self.cycles else 0.0

    @property
    def streams(self) -> LayerStreams:
        return sum((layer.streams for layer in self.layers), LayerStreams())

    @property
    def core_ms(self) -> float | None:
        return None if self.clock is None else sum(layer.core_ms for layer in self.on_weft)

    @property
    def wire_ms(self) -> float | None:
        return None if self.baud is None else sum(layer.wire_ms for layer in self.on_weft)

    @property
    def energy(self) -> Energy:
        return sum((layer.energy for layer in self.layers), Energy())

    def with_measured(self, cycles) -> "NetworkReport":
        """The report with the measured cycles of each layer; None for a layer without them."""
        layers = zip(self.layers, cycles, strict=True)
        measured = tuple(replace(layer, measured=count) for layer, count in layers)
        return replace(self, layers=measured)

    def to_json(self) -> dict:
        """Return all data as dicts, lists, strings and numbers, for `json.dumps`."""
        data = asdict(replace(self, against=None))
        for layer, entry in zip(self.layers, data["layers"], strict=True):
            entry["energy"]["total"] = layer.energy.total
        data["totals"] = {
            "macs": self.macs, "cycles": self.cycles, "utilization": self.utilization,
            "streams": asdict(self.streams), "core_ms": self.core_ms, "wire_ms": self.wire_ms,
            "energy": {**asdict(self.energy), "total": self.energy.total},
        }
        data["against"] = self.against and self.against.to_json()
        return data

    def __str__(self) -> str:
        from weft.models.report.text import render

        return render(self)
