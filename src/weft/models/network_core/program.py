"""A network compiled for a network core: the bytes of its memory, and what is where."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.host.list_plan import ProductSpace
from weft.models.ir import State
from weft.models.network_core.jobs import PlacedMap
from weft.models.network_core.layers import InputForm
from weft.models.network_core.prediction import stream_note, streamed_bytes
from weft.models.program import CompiledNetwork, Step
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import DESCRIPTOR_BYTES, ListLoad, unpack_list

if TYPE_CHECKING:
    from weft.models.network_core.session import NetworkCoreSession

__all__ = [
    "NetworkCoreInput", "NetworkCoreProgram", "NetworkCoreRename", "NetworkCoreResult",
    "NetworkCoreSegment", "NetworkCoreStep", "free_space", "memory_needs", "with_program_memory",
]


@dataclass(frozen=True)
class NetworkCoreInput:
    """A map that the host writes in each inference, before the list.

    Attributes
    ----------
    form : InputForm
    place : PlacedMap
        For inference n of a batch, ``n * NetworkCoreProgram.arena`` vectors further.
    """

    form: InputForm
    place: PlacedMap


@dataclass(frozen=True)
class NetworkCoreResult:
    """A map that the host reads when the list has ended.

    Attributes
    ----------
    tensor : int
    place : PlacedMap
        As in `NetworkCoreInput`.
    """

    tensor: int
    place: PlacedMap


@dataclass(frozen=True)
class NetworkCoreStep:
    """A layer on the core.

    Attributes
    ----------
    operators : tuple of str
    name : str
    position : tuple of int
        As in `weft.models.program.Step`.
    macs : int
    inputs : tuple of int
        Tensors: of its window, and the one that ADD adds.
    tensor : int
        Its output.
    place : PlacedMap
        Its output map.
    first_job, jobs : int
        Its jobs, counted from the start of the list.
    panels, panel_rows : int
    words : int
        Words of B.
    cycles : int
        Predicted cycles in the first inference, from the last store of the layer before to its own
        last store.
    left_out : int
        As in `weft.models.program.Step`.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    macs: int
    inputs: tuple[int, ...]
    tensor: int
    place: PlacedMap
    first_job: int
    jobs: int
    panels: int
    panel_rows: int
    words: int
    cycles: int
    left_out: int = 0


@dataclass(frozen=True)
class NetworkCoreRename:
    """An operator without work: its output is a map that layers have computed.

    A reshape has the map of its input; a concatenation joins maps that lie side by side. Layers
    read a reshaped tensor of the host as it lies: it has no map.

    Attributes
    ----------
    operators, name, position
        As in `NetworkCoreStep`.
    tensor : int
        Its output.
    place : PlacedMap or None
    source : int
        Without a map: the tensor of the host that has its values.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    tensor: int
    place: PlacedMap | None
    source: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkCoreSegment:
    """One list of an inference, and the operators of the host before it.

    Attributes
    ----------
    before : tuple of Step
        Operators of the host.
    written : tuple of NetworkCoreInput
        The inputs whose maps are written before the list runs.
    run : bytes
        The list, and all that it loads: the run part of `weft.models.network_core.image`.
    run_first : int
        The vector of its first byte.
    stream, stream_first : bytes, int
        Data of the program memory that the list loads from there, and their first vector. Only if
        the list lies on the chip.
    results : tuple of NetworkCoreResult
        DONE carries the first one if the list has ``result_bytes``.
    result_bytes : int
    steps : tuple of NetworkCoreStep
    renamed : tuple of NetworkCoreRename
    cycles : int
        Predicted cycles, from START to the end of the list (`weft.network_core.cycles`).
    """

    before: tuple[Step, ...]
    written: tuple[NetworkCoreInput, ...]
    run: bytes
    run_first: int
    stream: bytes
    stream_first: int
    results: tuple[NetworkCoreResult, ...]
    result_bytes: int
    steps: tuple[NetworkCoreStep, ...]
    renamed: tuple[NetworkCoreRename, ...]
    cycles: int


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkCoreProgram(CompiledNetwork):
    """A network compiled for a network core.

    An inference executes its segments in their order: operators of the host, then a list. Addresses
    are numbers of vectors from BASE on, or from the start of the program memory. With a program
    memory, setup, lists and log lie there; but lists and log are on the chip if ``areas`` has
    ``kept``, and all of them if the program is ``whole``.

    Attributes
    ----------
    name, source, mode, tensors, inputs, outputs, operators, notes
        As of `weft.models.program.CompiledNetwork`.
    target : NetworkTarget
        With a NetworkCoreConfig.
    batch : int
        Inferences of each list.
    setup : tuple of bytes
        Each from vector 0 on, one after the other: lists that load resident weights and parameters,
        and these. Empty if none are resident. In the memory on the chip the maps overwrite them.
    segments : tuple of NetworkCoreSegment
    after : tuple of Step
        Operators of the host after the last list.
    variables : tuple of NetworkCoreInput
        The maps of variables that stay in the memory: the session writes their first values. It
        writes and reads all other variables with each inference.
    log : int
        First vector of the log.
    arena : int
        Vectors of the maps of one inference; they start at vector 0.
    areas : mapping of str to int
        Bytes of ``maps``, the largest ``setup``, which shares their place, all lists (``list``),
        ``weights`` and ``parameters`` that an inference loads, and ``log``. With products between
        the lists, ``products``: the place where they are computed; and with a program memory
        ``product_lists``: their lists, and what these load. ``kept``: what is on the chip of
        lists, of what these load, and of the log.
    whole : bool
        Nothing is in the program memory, though the core has one: all lies where it does without.
    keeps_maps : bool
        No map overwrites another one.
    """

    batch: int
    setup: tuple[bytes, ...]
    segments: tuple[NetworkCoreSegment, ...]
    after: tuple[Step, ...]
    variables: tuple[NetworkCoreInput, ...]
    log: int
    arena: int
    areas: Mapping[str, int]
    keeps_maps: bool
    whole: bool

    @property
    def config(self) -> NetworkCoreConfig:
        """The core that it is compiled for."""
        return self.target.config

    @property
    def layout(self) -> NetworkCoreConfig:
        """The core whose memories the program uses: without the program memory if ``whole``."""
        return replace(self.config, program_words=0) if self.whole else self.config

    @property
    def lists_on_chip(self) -> bool:
        """Whether lists and log lie in the memory on the chip."""
        return not self.layout.program_words or "kept" in self.areas

    @property
    def streamed(self) -> int:
        """Bytes that an inference reads from the program memory, in whole beats.

        Both heads of a list read its descriptors. Of a batch, those of all inferences.
        """
        if not self.layout.program_words:
            return 0
        return sum(
            streamed_bytes(segment.run, self.config, on_chip=self.lists_on_chip)
            for segment in self.segments
        )

    @property
    def host_states(self) -> tuple[State, ...]:
        """The variables that are not in the memory of the core."""
        on_core = {entry.form.tensor for entry in self.variables}
        return tuple(state for state in self.states if state.before not in on_core)

    @property
    def layers(self) -> tuple[NetworkCoreStep, ...]:
        """The layers of all lists."""
        return tuple(step for segment in self.segments for step in segment.steps)

    @property
    def steps(self) -> tuple[Step | NetworkCoreStep, ...]:
        """The operators of the host and the layers, in the order of execution."""
        parts = ((*segment.before, *segment.steps) for segment in self.segments)
        return (*(step for part in parts for step in part), *self.after)

    @property
    def host(self) -> tuple[Step, ...]:
        """The operators of the host, in the order of execution."""
        before = (step for segment in self.segments for step in segment.before)
        return (*before, *self.after)

    @property
    def renamed(self) -> tuple[NetworkCoreRename, ...]:
        """The operators without work."""
        return tuple(step for segment in self.segments for step in segment.renamed)

    @property
    def products(self) -> tuple[Step, ...]:
        """The operators of the host whose products the core computes, in lists of their own."""
        return tuple(step for step in self.host if step.placement.on_weft)

    @property
    def products_space(self) -> ProductSpace:
        """Where products are computed; empty without them."""
        free, depth = free_space(self.areas, self.layout), self.config.array.depth
        vectors, lists = (
            self.areas.get(name, 0) // depth for name in ("products", "product_lists")
        )
        return ProductSpace(free.first, vectors, free.program_first, lists)

    @property
    def jobs(self) -> int:
        """Jobs of all lists."""
        return self.batch * sum(step.jobs for step in self.layers)

    @property
    def memory_used(self) -> int:
        """Bytes of the memory on the chip."""
        return memory_needs(self.areas, self.layout)[0]

    @property
    def program_memory_used(self) -> int:
        """Bytes of the program memory; 0 without one."""
        return memory_needs(self.areas, self.layout)[1]

    @property
    def cycles(self) -> int:
        """Predicted cycles of all lists, from START to the end of each, products included."""
        found = sum(segment.cycles for segment in self.segments)
        return found + sum(step.estimate.cycles for step in self.products if step.estimate)

    def check(self) -> None:
        """Raise ModelError if a part of the program does not fit the others."""
        from weft.models.network_core.program_check import check_network_core_program

        check_network_core_program(self)

    def open(self, runner, *, timeout: float = 60.0) -> "NetworkCoreSession":
        """Return a session on a core; its arguments are the ones of `NetworkCoreSession`.

        ``runner`` may be "golden": the golden model.
        """
        from weft.models.network_core.session import NetworkCoreSession

        if runner == "golden":
            from weft.models.network_core.runners import GoldenRunner

            runner = GoldenRunner(self.config)
        return NetworkCoreSession(self, runner, timeout=timeout)


def with_program_memory(
    program: NetworkCoreProgram, config: NetworkCoreConfig
) -> NetworkCoreProgram:
    """Return a program for ``config``, the core of the program but with a program memory."""
    def on_chip(data):
        entries = unpack_list(data)
        return b"".join(
            (replace(entry, on_chip=1) if isinstance(entry, ListLoad) else entry).pack()
            for entry in entries
        ) + data[len(entries) * DESCRIPTOR_BYTES :]

    return replace(
        program, target=replace(program.target, config=config),
        setup=tuple(on_chip(part) for part in program.setup),
        segments=tuple(replace(part, run=on_chip(part.run)) for part in program.segments),
        notes=(*program.notes, stream_note(0, program.batch)), whole=True,
    )


def memory_needs(areas: Mapping[str, int], config: NetworkCoreConfig) -> tuple[int, int]:
    """Return the bytes that all areas need of the memory, and of the program memory.

    The program memory has all areas except ``maps``, ``kept`` and ``products``. Without it,
    ``setup`` and ``maps`` share their place in the memory.
    """
    products, lists = (areas.get(name, 0) for name in ("products", "product_lists"))
    maps, program = _ends(areas, config)
    if not config.program_words:
        return maps + products, 0
    first = free_space(areas, config).program_first * config.array.depth
    return maps + products, first + lists if lists else program


def free_space(areas: Mapping[str, int], config: NetworkCoreConfig) -> ProductSpace:
    """Return what is free behind all areas but those of products: room for products."""
    depth = config.array.depth
    first, program_first = (-(-end // depth) for end in _ends(areas, config))
    if not config.program_words:
        return ProductSpace(first, config.vectors - first)
    program_first += -program_first % config.read_vectors  # a list begins a beat
    vectors = config.program_bytes // depth - program_first
    return ProductSpace(first, config.vectors - first, program_first, vectors)


def _ends(areas, config):
    """Return the bytes of all areas but those of products, in both memories."""
    rest = sum(areas[name] for name in ("list", "weights", "parameters", "tables", "log"))
    if config.program_words:
        kept = areas.get("kept", 0)
        return areas["maps"] + kept, areas["setup"] + rest - kept
    return max(areas["maps"], areas["setup"]) + rest, 0
