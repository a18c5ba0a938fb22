"""Compiles a graph for a core for networks: layers, places, lists, and the image of the memory."""

import operator
from typing import SupportsIndex

from weft.models.errors import ModelError, UnfitError
from weft.models.exactness import exactness_of
from weft.models.host_modes import in_mode
from weft.models.ir import Graph
from weft.models.network_core.division import divide
from weft.models.network_core.image import make_image
from weft.models.network_core.memory import plan_maps
from weft.models.network_core.pitches import panels_of, panels_of_parts
from weft.models.network_core.prediction import predict_run, program_conditions
from weft.models.network_core.program import (
    ChipInput,
    ChipProgram,
    ChipRename,
    ChipResult,
    ChipSegment,
    ChipStep,
    memory_needs,
)
from weft.models.network_core.schedule import LayerDemand, schedule_buffers
from weft.models.network_core.weights import LayerWords
from weft.models.target import NetworkTarget
from weft.network_core.config import has_single_port

__all__ = ["compile_chip"]

_MAX_BATCH = (1 << 16) - 1  # turns of a loop
_MAX_RESULT = 1024  # bytes that DONE carries
_LOG_BYTES = 8  # of each job


def compile_chip(
    graph: Graph, target: NetworkTarget, *, batch: int = 1, activations: bool = False,
) -> ChipProgram:
    """Compile a network for a core for networks.

    Parameters
    ----------
    graph : Graph
    target : NetworkTarget
        With a ChipConfig.
    batch : int
        Inferences of each list; each has maps of its own.
    activations : bool
        Keep all maps until the end, and compute ADD in a layer of its own: so a session can return
        the output of each operator.

    Raises
    ------
    UnfitError
        If the memory or the buffers of the core are too small, if the network is not of
        TensorFlow Lite, or if none of its products is a layer; the message has the numbers.
    ModelError
        If an operator is not valid.
    """
    chip = target.chip
    core = chip.core
    if not isinstance(batch, SupportsIndex) or not 1 <= batch <= _MAX_BATCH:
        raise ModelError(f"batch must be an integer in 1..{_MAX_BATCH}, not {batch!r}")
    batch = operator.index(batch)
    divided = divide(graph, core.requantize, core.cols, core.depth, fuse=not activations)
    exactness = exactness_of(in_mode(graph, core.requantize), core.requantize, core)
    products = [step for step in divided.after if step.macs]
    if products and not divided.layers:
        first = products[0]
        raise UnfitError(
            f"{graph.name}: a core for networks needs a product that is a layer; operator"
            f" {first.position[0]} ({first.operators[0]} {first.name}): {first.placement.reason}"
        )
    sizes = [
        LayerWords.of(layer, divided.maps[layer.x].channels, chip) for layer in divided.layers
    ]
    found = None
    for tight in ({}, {"dense": True}, {"dense": True, "fewest": True}):
        try:
            return _compiled(
                divided, exactness, sizes, target, chip, batch, activations, **tight
            )
        except _TooLarge as error:
            found = error  # of the smallest program
        except ValueError as error:
            raise UnfitError(f"{graph.name}: {error}") from error
    raise UnfitError(f"{graph.name}: {found}")


class _TooLarge(Exception):
    """The memory is too small; the text has the numbers."""


def _compiled(
    divided, exactness, sizes, target, chip, batch, activations, dense=False, fewest=False
):
    """Return the program; ``dense``: with the smallest maps; ``fewest``: with the fewest jobs."""
    core = chip.core
    plan = plan_maps(divided, sizes, chip, keep=activations, dense=dense)
    maps = plan.maps
    panels = [
        panels_of_parts(layer.parts, core.rows) if layer.parts > 1
        else panels_of(layer.window, maps[layer.x].pitches, core.rows, chip.banks)
        for layer in divided.layers
    ]
    demands = [
        LayerDemand(
            f"{layer.operators[0]} {layer.name}", size, found.count, found.rows,
            layer.addition is not None,
        )
        for layer, size, found in zip(divided.layers, sizes, panels, strict=True)
    ]
    schedule = schedule_buffers(demands, chip, fewest=fewest)
    depth = core.depth
    results = [
        tuple(ChipResult(tensor, maps[place]) for tensor, place in segment.results.items())
        for segment in divided.segments
    ]
    ends = [
        (found[0].place.first if found else 0, _result_bytes(found, batch, depth))
        for found in results
    ]
    counts = [
        sum(part.layer in segment.layers for part in schedule.parts)
        for segment in divided.segments
    ]
    log_vectors = batch * max(counts, default=0) * -(-_LOG_BYTES // depth)
    image = make_image(
        divided, sizes, panels, schedule, maps, plan.vectors, batch, chip, ends, log_vectors,
    )
    areas = {
        "maps": plan.vectors * batch * depth, "setup": max(map(len, image.setup), default=0),
        **image.areas, "log": log_vectors * depth,
    }
    _check_size(areas, divided, plan, batch, chip)
    written: set[int] = set()
    segments = tuple(
        _segment(divided, number, sizes, panels, schedule, maps, image, chip, written, found, end)
        for number, (found, (_, end)) in enumerate(zip(results, ends, strict=True))
    )
    notes = tuple(divided.notes)
    if chip.program_words and segments:
        notes += (f"the cycles are for {program_conditions(chip)}",)
    return ChipProgram(
        name=divided.name, source=divided.source, mode=divided.mode, target=target,
        tensors=divided.tensors, inputs=divided.inputs, outputs=divided.outputs,
        operators=divided.operators, exactness=exactness, notes=notes, batch=batch,
        setup=image.setup,
        segments=segments, after=divided.after, log=image.end, arena=plan.vectors, areas=areas,
        keeps_maps=activations,
    )


def _segment(
    divided, number, sizes, panels, schedule, maps, image, chip, written, results, result_bytes
):
    """Return one list, with its operators of the host; ``written`` are maps that are written."""
    segment, (first, run) = divided.segments[number], image.runs[number]
    read = {n for layer in segment.layers
            for n in (divided.layers[layer].x, divided.layers[layer].added)}
    new = [n for n, found in enumerate(divided.maps) if n in read - written and found.form]
    written.update(new)
    prediction = predict_run(chip, run, first, image.end)
    return ChipSegment(
        before=segment.before,
        written=tuple(ChipInput(divided.maps[n].form, maps[n]) for n in new),
        run=run, run_first=first, results=results, result_bytes=result_bytes,
        steps=tuple(_steps(divided, segment, sizes, panels, schedule, maps, prediction)),
        renamed=tuple(
            ChipRename((node.operator,), node.name, node.position, tensor, maps[place])
            for node, tensor, place in segment.renamed
        ),
        cycles=prediction.cycles,
    )


def _steps(divided, segment, sizes, panels, schedule, maps, prediction):
    """Yield the facts of all layers of a list."""
    before, first = 0, 0  # the last store of the layer before; the first job
    for number in segment.layers:
        layer = divided.layers[number]
        jobs = sum(part.layer == number for part in schedule.parts)
        _, end = prediction.jobs[first + jobs - 1]
        yield ChipStep(
            layer.operators, layer.name, layer.position, layer.macs,
            tuple(divided.maps[n].tensor for n in (layer.x, layer.added) if n >= 0),
            divided.maps[layer.y].tensor, maps[layer.y], first, jobs,
            panels[number].count, panels[number].rows, sizes[number].words(sizes[number].tiles),
            end - before,
        )
        before, first = end, first + jobs


def _result_bytes(results, batch, depth):
    """Return the bytes of the result of a list, if it has one and DONE can carry it; else 0."""
    if batch > 1 or len(results) != 1:
        return 0
    place = results[0].place
    size = place.pitches.vectors * depth - -place.channels % depth
    return size if size <= _MAX_RESULT else 0


def _check_size(areas, divided, plan, batch, chip):
    """Raise _TooLarge if the memory is too small for its areas."""
    needed, program_needed = memory_needs(areas, chip)
    each = ", ".join(
        f"{name} {size:,}" for name, size in areas.items()
        if not chip.program_words or name != "maps"
    )
    if needed > chip.memory_bytes:
        what = "maps" if chip.program_words else f"{each}; setup and maps share their place"
        raise _TooLarge(
            f"the memory must have {needed:,} bytes ({what}), and"
            f" has {chip.memory_bytes:,}: {chip.size_text(chip.words)}."
            f" {_largest_maps(divided, plan, batch, chip)}"
            f" {_way_out(needed, areas['maps'], chip)}"
        )
    if program_needed > chip.program_bytes:
        raise _TooLarge(
            f"the program memory must have {program_needed:,} bytes ({each}), and has"
            f" {chip.program_bytes:,}: {chip.size_text(chip.program_words)}"
        )


def _largest_maps(divided, plan, batch, chip):
    """Return a sentence with the layer whose maps need the most memory."""
    layer = divided.layers[plan.peak]
    found = ", ".join(
        f"{' x '.join(map(str, divided.maps[number].size))} ({vectors * chip.core.depth:,} bytes)"
        for number, vectors in plan.live
    )
    times = f", for each of {batch} inferences" if batch > 1 else ""
    return (
        f"Operator {layer.position[0]} ({layer.operators[0]} {layer.name}) needs the most maps:"
        f" {found}{times}."
    )


def _way_out(needed, maps, chip):
    """Return what to do if the memory must have ``needed`` bytes."""
    words = 1 << (-(-needed // (chip.banks * chip.core.depth)) - 1).bit_length()
    fits = words <= chip.most_words
    least = f"at least {words:,}" if fits else f"{words:,}, and no such core has so many"
    text = f"words must be {least}; or the input must be smaller"
    if chip.program_words:
        return f"A program memory has no maps: {text}"
    if maps <= chip.memory_bytes and not has_single_port(chip.core):
        text += "; with program_words only the maps need this memory"
    return text[0].upper() + text[1:]
