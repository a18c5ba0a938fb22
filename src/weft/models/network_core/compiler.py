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
from weft.models.network_core.demands import BufferSchedule, layer_demands
from weft.models.network_core.division import divide
from weft.models.network_core.image import MemoryImage, make_image
from weft.models.network_core.layers import InputForm
from weft.models.network_core.list_steps import estimated, products_area
from weft.models.network_core.map_pitches import Panels, panels_of, panels_of_parts
from weft.models.network_core.memory import MapPlacement, plan_maps
from weft.models.network_core.prediction import (
    TURNS,
    predict_run,
    program_conditions,
    stream_note,
    streamed_bytes,
)
from weft.models.network_core.program import (
    NetworkCoreInput,
    NetworkCoreProgram,
    NetworkCoreRename,
    NetworkCoreResult,
    NetworkCoreSegment,
    NetworkCoreStep,
    free_space,
    with_program_memory,
)
from weft.models.network_core.residence import CHIP_PACE, LoadPace
from weft.models.network_core.resident import setup_bytes
from weft.models.network_core.schedule import schedule_buffers
from weft.models.network_core.size_texts import TooLarge, check_size, way_out
from weft.models.network_core.stripes import striped
from weft.models.network_core.weights import LayerWords
from weft.models.progress import Progress, Watch
from weft.models.target import NetworkTarget

__all__ = ["compile_network_core"]

_MAX_BATCH = (1 << 16) - 1  # turns of a loop
_MAX_RESULT = 1024  # bytes that DONE carries
_LOG_BYTES = 8  # of each job
_ROUNDS = 8  # of jobs for what is on the chip, and of what is on the chip for these, at most
_SHARES = 1, 0.95, 0.9, 0.75  # of the memory for stripes: maps with gaps have fewer bank conflicts


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
    if program := _whole(graph, *arguments, plain=True):
        return program
    try:
        program = _compiled(graph, *arguments)
        # On the chip alone, the maps may be denser, or have stripes.
        found = program, _whole(graph, *arguments, plain=False)
        return min(
            (each for each in found if each), key=lambda each: (len(each.host), each.cycles)
        )
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


def _whole(graph, exactness, left_out, target, batch, activations, progress, plain):
    """Return the program that needs no program memory, though the core has one; None if none does.

    The timing of the program memory must be known. All lies as in the same core without it.
    ``plain`` as of `_compiled`.
    """
    config = target.config
    if not config.program_words or target.memory is None:
        return None
    alone = dataclasses.replace(config, program_words=0)
    target = dataclasses.replace(target, config=alone, memory=None)
    try:
        program = _compiled(
            graph, exactness, left_out, target, batch, activations, progress, plain=plain
        )
    except (UnfitError, _Refused):
        return None
    return None if program.products else with_program_memory(program, config)


class _Refused(Exception):
    """The program does not fit the core; ``has_tables`` is that of the `NetworkCoreGraph`."""

    def __init__(self, text, has_tables):
        super().__init__(text)
        self.has_tables = has_tables


def _compiled(
    graph, exactness, left_out, target, batch, activations, progress, tables=True, variables=True,
    plain=False,
):
    """Return the program, with lookup ``tables`` and ``variables`` on the core or without.

    ``plain``: with maps as the array reads them best, and without stripes.
    """
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
        return _Compiler(divided, *arguments).program(plain)
    except ValueError as error:
        raise _Refused(f"{graph.name}: {error}", divided.has_tables) from error
    except TooLarge as error:
        refused = error
    if plain:
        raise _Refused(str(refused), divided.has_tables) from refused
    if divided.variables:  # without them there is more room, and stripes may do
        with contextlib.suppress(UnfitError):  # no layer may be left, as of an LSTM alone
            return _compiled(graph, *arguments, tables=tables, variables=False)
    # Nothing reads the maps of a stripe afterwards, so a program that keeps its maps has none.
    may_divide = not (activations or divided.variables)
    found = []
    for share in _SHARES if may_divide else ():
        smaller = striped(divided, config, int(refused.room * share))
        if smaller is None:
            break
        with contextlib.suppress(TooLarge, ValueError):
            found.append(_Compiler(smaller, *arguments).program())
    if found:
        return min(found, key=lambda program: program.cycles)
    least, stripes = _least_words(divided, config, batch, refused, may_divide)
    text = f"{'without stripes of rows ' if stripes else ''}{refused}"
    text = f"{graph.name}: {text} {way_out(least, stripes, refused.maps, config)}".rstrip()
    raise _Refused(text, divided.has_tables) from refused


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
        timing = target.memory if target.config.program_words else None
        self._pace = LoadPace.of_program(timing) if timing else None

    def program(self, plain=False) -> NetworkCoreProgram:
        """Return the program; TooLarge if none fits the memory, ValueError for the buffers.

        ``plain`` as of `_compiled`.
        """
        self._check_smallest()
        if plain:
            return self._program(self._layout())
        for tight in ({}, {"dense": True}):
            with contextlib.suppress(TooLarge):
                return self._program(self._layout(**tight))
        return self._program(self._layout(dense=True, fewest=True))

    def _check_smallest(self):
        """Raise TooLarge if no program fits the memory: a good schedule takes much longer.

        The smallest one has the fewest jobs. Its maps are dense, except that placing larger maps
        may by chance need less memory.
        """
        with contextlib.suppress(ValueError):  # of large jobs; smaller ones may have none
            try:
                self._layout(dense=True, fewest=True)
            except TooLarge as error:
                try:
                    self._layout(fewest=True)
                except TooLarge:
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
        demands = layer_demands(divided, sizes, panels, config)
        products = [step for step in divided.host if step.placement.on_weft]
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
        pace = None if products else self._pace  # whose lists need space on the chip, too

        def scheduled(load_pace, kept=()):
            """Return a schedule for loads of a pace, its image, and the vectors of the log."""
            schedule = schedule_buffers(
                demands, config, fewest=fewest, alone=not products, progress=self._progress,
                pace=load_pace, kept=kept,
            )
            jobs = max((
                sum(part.layer in segment.layers for part in schedule.parts)
                for segment in divided.segments
            ), default=0)
            log = batch * jobs * -(-_LOG_BYTES // depth)
            return schedule, log, make_image(
                divided, sizes, panels, schedule, maps, plan.vectors, batch, config, ends, log,
                pace,
            )

        def order(found):
            return not found[2].streams, found[2].cycles

        def improved(found):
            """Return the best of schedules that follow each other from ``found`` on.

            What is on the chip depends on the jobs, and these on what is on the chip.
            """
            for _ in range(0 if fewest else _ROUNDS):
                after = scheduled(pace, found[2].kept) if any(found[2].kept) else found
                if order(after) >= order(found):
                    break
                found = after
            return found

        schedule, log_vectors, image = min(
            (improved(scheduled(each)) for each in dict.fromkeys([CHIP_PACE, pace or CHIP_PACE])),
            key=order,
        )
        areas = {
            "maps": plan.vectors * batch * depth,
            "setup": setup_bytes(image.setup, config), **image.areas,
            "log": log_vectors * depth,
        }
        check_size(areas, divided, plan, batch, config)
        space = None
        if products:
            free = free_space(areas, config)
            try:
                space = products_area(products, divided.tensors, config, batch, free)
            except ValueError as error:
                raise TooLarge(f"single products need memory of their own: {error}") from error
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
            count = sum(
                streamed_bytes(each.run, self._network_core, on_chip=bool(image.streams))
                for each in segments
            )
            notes += (stream_note(count, self._batch),)
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
            keeps_maps=self._activations, whole=False, left_out=self._left_out,
        )


def _notes_of_variables(divided):
    """Yield what a user should know about the variables."""
    for kept, text in (
        (True, "the memory of the core keeps"), (False, "the session writes and reads"),
    ):
        names = [each.name for each in divided.states if (each.before in divided.variables) == kept]
        if names:
            yield f"{text} {', '.join(names)}"


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
        target.config, run, first, image.end, timing=target.memory, watch=watch,
        on_chip=bool(image.streams),
    )
    stream_first, stream = image.streams[number] if image.streams else (0, b"")
    return NetworkCoreSegment(
        before=before,
        written=tuple(NetworkCoreInput(divided.maps[n].form, maps[n]) for n in new),
        run=run, run_first=first, stream=stream, stream_first=stream_first, results=results,
        result_bytes=result_bytes,
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
