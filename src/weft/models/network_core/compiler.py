"""Compiles a graph for a network core: layers, places, lists, and the image of the memory."""

import contextlib
import dataclasses
import operator
from dataclasses import dataclass
from typing import SupportsIndex

from weft.host.list_plan import ProductSpace
from weft.models.dead_channels import leave_out_channels, notes_of
from weft.models.errors import ModelError, UnfitError
from weft.models.exactness import exactness_of, in_mode
from weft.models.ir import Graph
from weft.models.network_core.division import divide
from weft.models.network_core.image import MemoryImage, make_image
from weft.models.network_core.jobs import shape_of_jobs
from weft.models.network_core.layers import InputForm
from weft.models.network_core.list_steps import estimated, products_area
from weft.models.network_core.map_pitches import Panels, panels_of, panels_of_parts
from weft.models.network_core.memory import MapPlacement, plan_maps
from weft.models.network_core.prediction import TURNS, predict_run, program_conditions
from weft.models.network_core.program import (
    NetworkCoreInput,
    NetworkCoreProgram,
    NetworkCoreRename,
    NetworkCoreResult,
    NetworkCoreSegment,
    NetworkCoreStep,
    free_space,
    memory_needs,
)
from weft.models.network_core.schedule import BufferSchedule, LayerDemand, schedule_buffers
from weft.models.network_core.size_texts import (
    larger_program,
    largest_maps,
    most_weights,
    way_out,
)
from weft.models.network_core.stripes import striped
from weft.models.network_core.weights import LayerWords
from weft.models.progress import Progress, Watch
from weft.models.target import NetworkTarget
from weft.network_core.cycles import softmax_cycles

__all__ = ["compile_network_core"]

_MAX_BATCH = (1 << 16) - 1  # turns of a loop
_MAX_RESULT = 1024  # bytes that DONE carries
_LOG_BYTES = 8  # of each job
_SHARES = 1, 0.9, 0.75  # of the memory for stripes: maps with gaps have fewer bank conflicts


def compile_network_core(
    graph: Graph, target: NetworkTarget, *, batch: int = 1, activations: bool = False,
    watch: Watch | None = None,
) -> NetworkCoreProgram:
    """Compile a network for a network core.

    Parameters
    ----------
    graph : Graph
    target : NetworkTarget
        With a NetworkCoreConfig.
    batch : int
        Inferences of each list; each has maps of its own.
    activations : bool
        Keep all maps until the end with all their channels, and compute ADD in a layer of its own:
        so a session can return the output of each operator.
    watch : callable, optional
        Called with the part that is done, from 0 to 1.

    Raises
    ------
    UnfitError
        If the memory or the buffers of the core are too small, or if none of its products is a
        layer; the message has the numbers. KindError if the core has the rounding of another
        runtime than the one of the file.
    ModelError
        If an operator is not valid.
    """
    config = target.config
    array = config.array
    if not isinstance(batch, SupportsIndex) or not 1 <= batch <= _MAX_BATCH:
        raise ModelError(f"batch must be an integer in 1..{_MAX_BATCH}, not {batch!r}")
    batch = operator.index(batch)
    if graph.states and batch > 1:
        raise ModelError(
            f"{graph.name}: batch must be 1, not {batch}: an inference needs the variables of the"
            " one before"
        )
    mode = array.requantize
    graph, left_out = in_mode(graph, mode), None
    exactness = exactness_of(graph, mode, array)
    if not activations:
        graph, left_out = leave_out_channels(graph, mode, max(array.cols, array.depth))
    graph = dataclasses.replace(graph, notes=notes_of(graph, left_out))
    arguments = exactness, left_out, target, batch, activations, Progress(watch)
    try:
        return _compiled(graph, *arguments)
    except _Refused as error:
        if not error.has_tables:
            raise UnfitError(str(error)) from error
        whole = error
    # Each table takes 512 vectors of the memory, and weights of 0 and 1 take some: a smaller
    # program leaves such operators to the host, and has large products one by one.
    try:
        return _compiled(graph, *arguments, tables=False)
    except _Refused as error:
        raise UnfitError(str(error)) from error
    except UnfitError:  # no layer is left
        raise UnfitError(str(whole)) from whole


class _Refused(Exception):
    """The program does not fit the core; ``has_tables`` is that of the `NetworkCoreGraph`."""

    def __init__(self, text, has_tables):
        super().__init__(text)
        self.has_tables = has_tables


def _compiled(
    graph, exactness, left_out, target, batch, activations, progress, tables=True, variables=True
):
    """Return the program, with lookup ``tables`` and ``variables`` on the core or without."""
    config = target.config
    array = config.array
    divided = divide(
        graph, array.requantize, array.cols, array.depth, fuse=not activations, config=config,
        tables=tables, batch=batch, variables=variables and not activations,
    )
    products = [step for step in divided.after if step.macs]
    if products and not divided.layers:
        first = products[0]
        raise UnfitError(
            f"{graph.name}: a network core needs a product that is a layer; operator"
            f" {first.position[0]} ({first.operators[0]} {first.name}): {first.placement.reason}"
        )
    arguments = exactness, left_out, target, batch, activations, progress
    try:
        return _Compiler(divided, *arguments).program()
    except ValueError as error:
        raise _Refused(f"{graph.name}: {error}", divided.has_tables) from error
    except _TooLarge as error:
        refused = error
    if divided.variables:  # without them there is more room, and stripes may do
        return _compiled(graph, *arguments, tables=tables, variables=False)
    # Nothing reads the maps of a stripe afterwards, so a program that keeps its maps has none.
    found = []
    for share in () if activations else _SHARES:
        smaller = striped(divided, config, int(refused.room * share))
        if smaller is None:
            break
        with contextlib.suppress(_TooLarge, ValueError):
            found.append(_Compiler(smaller, *arguments).program())
    if found:
        return min(found, key=lambda program: program.cycles)
    least, stripes = _least_words(divided, config, batch, refused, not activations)
    text = f"{'without stripes of rows ' if stripes else ''}{refused}"
    text = f"{graph.name}: {text} {way_out(least, stripes, refused.maps, config)}".rstrip()
    raise _Refused(text, divided.has_tables) from refused


class _TooLarge(Exception):
    """The memory is too small; the text has the numbers.

    Attributes
    ----------
    needed, maps : int
        Bytes of the memory, and of the maps in it; 0 if another memory is too small.
    room : int
        Vectors for the maps of an inference, beside all else; below 0 if all else is too large.
    """

    def __init__(self, text, needed=0, maps=0, room=0):
        super().__init__(text)
        self.needed, self.maps, self.room = needed, maps, room


@dataclass(frozen=True)
class _Layout:
    """Where all of a program lies: maps, jobs, and the bytes of the memory.

    ``products`` is the space for single products of the host; None without them.
    """

    plan: MapPlacement
    panels: list[Panels]
    schedule: BufferSchedule
    results: list[tuple[NetworkCoreResult, ...]]
    ends: list[tuple[int, int]]
    image: MemoryImage
    areas: dict[str, int]
    products: ProductSpace | None


class _Compiler:
    """Compiles divided networks: with the fewest cycles for which the memory is large enough."""

    def __init__(self, divided, exactness, left_out, target, batch, activations, progress):
        self._divided = divided
        self._sizes = [
            LayerWords.of(layer, divided.maps[layer.x].channels, target.config)
            for layer in divided.layers
        ]
        self._exactness, self._left_out = exactness, left_out
        self._target, self._network_core = target, target.config
        self._batch, self._activations = batch, activations
        self._progress, self._predicted = progress, 0

    def program(self) -> NetworkCoreProgram:
        """Return the program; _TooLarge if none fits the memory, ValueError for the buffers."""
        self._check_smallest()
        for tight in ({}, {"dense": True}):
            with contextlib.suppress(_TooLarge):
                return self._program(self._layout(**tight))
        return self._program(self._layout(dense=True, fewest=True))

    def _check_smallest(self):
        """Raise _TooLarge if no program fits the memory: a good schedule takes much longer.

        The smallest one has the fewest jobs. Its maps are dense, except that placing larger maps
        may by chance need less memory.
        """
        with contextlib.suppress(ValueError):  # of large jobs; smaller ones may have none
            try:
                self._layout(dense=True, fewest=True)
            except _TooLarge as error:
                try:
                    self._layout(fewest=True)
                except _TooLarge:
                    raise error from None

    def _layout(self, dense=False, fewest=False) -> _Layout:
        """Return a layout; ``dense``: with the smallest maps; ``fewest``: with the fewest jobs."""
        divided, sizes, config, batch = self._divided, self._sizes, self._network_core, self._batch
        array = config.array
        plan = plan_maps(divided, sizes, config, keep=self._activations, dense=dense)
        maps = plan.maps
        panels = [
            panels_of_parts(layer.parts, array.rows) if layer.parts > 1
            else panels_of(layer.window, maps[layer.x].pitches, array.rows, config.banks)
            for layer in divided.layers
        ]
        demands = [
            LayerDemand(
                layer.title, size, shape_of_jobs(layer), layer_panels,
                layer.read_as_added >= 0, loads,
                softmax_cycles(config, layer.columns, layer.pixels) if layer.is_softmax else 0,
                layer.b >= 0,
            )
            for layer, size, layer_panels, loads in zip(
                divided.layers, sizes, panels, _table_loads(divided), strict=True
            )
        ]
        products = [step for step in divided.host if step.placement.on_weft]
        schedule = schedule_buffers(
            demands, config, fewest=fewest, alone=not products, progress=self._progress
        )
        depth = array.depth
        results = [
            tuple(
                NetworkCoreResult(tensor, maps[place]) for tensor, place in segment.results.items()
            )
            for segment in divided.segments
        ]
        ends = [
            (each[0].place.first if each else 0, _result_bytes(each, batch, depth))
            for each in results
        ]
        counts = [
            sum(part.layer in segment.layers for part in schedule.parts)
            for segment in divided.segments
        ]
        log_vectors = batch * max(counts, default=0) * -(-_LOG_BYTES // depth)
        image = make_image(
            divided, sizes, panels, schedule, maps, plan.vectors, batch, config, ends, log_vectors,
        )
        areas = {
            "maps": plan.vectors * batch * depth,
            "setup": max(map(len, image.setup), default=0), **image.areas,
            "log": log_vectors * depth,
        }
        _check_size(areas, divided, plan, batch, config)
        space = None
        if products:
            free = free_space(areas, config)
            try:
                space = products_area(products, divided.tensors, config, batch, free)
            except ValueError as error:
                raise _TooLarge(f"single products need memory of their own: {error}") from error
            areas["products"] = space.vectors * depth
            if config.program_words:
                areas["product_lists"] = space.program_vectors * depth
        return _Layout(plan, panels, schedule, results, ends, image, areas, space)

    def _estimated(self, steps, layout):
        """Return operators of the host with the cost of their products."""
        found = []
        for step in steps:
            if step.placement.on_weft:
                step = estimated(
                    step, self._divided.tensors, self._network_core, self._batch, layout.products
                )
                self._advance()
            found.append(step)
        return tuple(found)

    def _advance(self):
        """Tell that one more job, or one more single product, has its cycles."""
        self._predicted += 1
        self._progress(self._predicted)

    def _program(self, layout: _Layout) -> NetworkCoreProgram:
        divided, image = self._divided, layout.image
        written: set[int] = set()
        jobs = len(layout.schedule.parts) * min(self._batch, TURNS)
        self._predicted = 0
        self._progress.begin(jobs + sum(step.placement.on_weft for step in divided.host))
        segments = tuple(
            _segment(
                divided, number, self._estimated(divided.segments[number].before, layout),
                self._sizes, layout.panels, layout.schedule, layout.plan.maps, image,
                self._target, written, results_of_list, end, self._advance,
            )
            for number, (results_of_list, (_, end)) in enumerate(
                zip(layout.results, layout.ends, strict=True)
            )
        )
        notes = (*divided.notes, *_notes_of_variables(divided))
        if self._network_core.program_words and segments:
            conditions = program_conditions(self._network_core, self._target.memory)
            notes += (f"the cycles are for {conditions}",)
        return NetworkCoreProgram(
            name=divided.name, source=divided.source, mode=divided.mode, target=self._target,
            tensors=divided.tensors, inputs=divided.inputs, outputs=divided.outputs,
            operators=divided.operators, exactness=self._exactness, notes=notes,
            states=divided.states, batch=self._batch, setup=image.setup, segments=segments,
            after=self._estimated(divided.after, layout), variables=tuple(
                NetworkCoreInput(InputForm(tensor, *divided.maps[n].size), layout.plan.maps[n])
                for tensor, n in divided.variables.items()
            ),
            log=image.end, arena=layout.plan.vectors, areas=layout.areas,
            keeps_maps=self._activations, left_out=self._left_out,
        )


def _notes_of_variables(divided):
    """Yield what a user should know about the variables."""
    for kept, text in (
        (True, "the memory of the core keeps"), (False, "the session writes and reads"),
    ):
        names = [each.name for each in divided.states if (each.before in divided.variables) == kept]
        if names:
            yield f"{text} {', '.join(names)}"


def _table_loads(divided):
    """Return for each layer whether it loads the ADD table: each list loads what it needs."""
    loads = []
    for segment in divided.segments:
        held = None
        for number in segment.layers:
            addition = divided.layers[number].addition
            needed = None if addition is None else addition.table.tobytes()
            loads.append(needed is not None and needed != held)
            held = needed or held
    return loads


def _segment(
    divided, number, before, sizes, panels, schedule, maps, image, target, written, results,
    result_bytes, watch,
):
    """Return one list, after the operators ``before``; ``written`` are maps that are written."""
    segment, (first, run) = divided.segments[number], image.runs[number]
    layers = (divided.layers[number] for number in segment.layers)
    read = {divided.root(n) for layer in layers for n in layer.reads}
    new = [
        n for n, network_map in enumerate(divided.maps) if n in read - written and network_map.form
    ]
    written.update(new)
    prediction = predict_run(
        target.config, run, first, image.end, timing=target.memory, watch=watch
    )
    return NetworkCoreSegment(
        before=before,
        written=tuple(NetworkCoreInput(divided.maps[n].form, maps[n]) for n in new),
        run=run, run_first=first, results=results, result_bytes=result_bytes,
        steps=tuple(_steps(divided, segment, sizes, panels, schedule, maps, prediction)),
        renamed=tuple(
            NetworkCoreRename(
                (node.operator,), node.name, node.position, tensor,
                *((None, node.inputs[0]) if place is None else (maps[place],)),
            )
            for node, tensor, place in segment.renamed
        ),
        cycles=prediction.cycles,
    )


def _steps(divided, segment, sizes, panels, schedule, maps, prediction):
    """Yield the facts of all operators of a list; those of an operator's layers are one step."""
    before, first, own = 0, 0, []  # the last store before; the first job; layers of the operator
    for number in segment.layers:
        own.append(number)
        layer = divided.layers[number]
        if not layer.operators:
            continue
        jobs = sum(part.layer in own for part in schedule.parts)
        _, end = prediction.jobs[first + jobs - 1]
        y = layer.y if layer.result < 0 else layer.result
        read = dict.fromkeys(  # in their order
            tensor for each in own
            for n in divided.layers[each].reads for tensor in divided.tensors_in(n)
        )
        yield NetworkCoreStep(
            layer.operators, layer.name, layer.position, layer.macs,
            tuple(read),
            divided.maps[y].tensor, maps[y], first, jobs,
            sum(panels[each].count for each in own), panels[number].rows,
            sum(sizes[each].words(sizes[each].tiles) for each in own),
            end - before, layer.left_out,
        )
        before, first, own = end, first + jobs, []


def _result_bytes(results, batch, depth):
    """Return the bytes of the result of a list, if it has one and DONE can carry it; else 0."""
    if batch > 1 or len(results) != 1:
        return 0
    place = results[0].place
    size = place.pitches.vectors * depth - -place.channels % depth
    return size if size <= _MAX_RESULT else 0


def _check_size(areas, divided, plan, batch, config):
    """Raise _TooLarge if the memory is too small for its areas."""
    needed, program_needed = memory_needs(areas, config)
    each = ", ".join(
        f"{name} {size:,}" for name, size in areas.items()
        if not config.program_words or name != "maps"
    )
    if needed > config.memory_bytes:
        what = "maps" if config.program_words else f"{each}; setup and maps share their place"
        raise _TooLarge(
            f"the memory must have {needed:,} bytes ({what}), and"
            f" has {config.memory_bytes:,}: {config.size_text(config.words)}."
            f" {needed - config.memory_bytes:,} bytes are missing."
            f" {largest_maps(divided, plan, batch, config)}",
            needed=needed, maps=areas["maps"],
            room=(config.memory_bytes - needed + areas["maps"]) // (config.array.depth * batch),
        )
    if program_needed > config.program_bytes:
        raise _TooLarge(
            f"the program memory must have {program_needed:,} bytes ({each}), and has"
            f" {config.program_bytes:,}: {config.size_text(config.program_words)}."
            f" {program_needed - config.program_bytes:,} bytes are missing."
            f" {most_weights(divided)} {larger_program(program_needed, config)}"
        )


def _least_words(divided, config, batch, refused, stripes):
    """Return the fewest words with which the maps fit, and whether that takes stripes.

    Without ``stripes`` all maps must fit whole.
    """
    whole = 1 << (-(-refused.needed // (config.banks * config.array.depth)) - 1).bit_length()
    words = config.words
    while stripes and 2 * words < whole:
        words *= 2
        more = (words - config.words) * config.banks // batch
        if striped(divided, config, refused.room + more) is not None:
            return words, True
    return whole, False
