"""Checks that the parts of a program for a network core fit together, before it is run."""

import math
from typing import TYPE_CHECKING

from weft.host.list_plan import block_sizes
from weft.models.errors import ModelError, require
from weft.models.network_core.jobs import PlacedMap
from weft.models.network_core.list_steps import shape_of
from weft.models.network_core.resident import setup_bytes
from weft.models.network_core.wide_maps import INT16
from weft.models.program_check import check
from weft.models.work import core_works, list_products
from weft.network_core.descriptors import ListJob, ListLoop, unpack_list

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreProgram

__all__ = ["check_network_core_program"]

_AREAS = {"maps", "setup", "list", "weights", "parameters", "tables", "log"}
_MAX_RESULT = 1024


def check_network_core_program(program: "NetworkCoreProgram") -> None:
    """Raise ModelError if a part of a program for a network core does not fit the others."""
    check(program)
    config = program.config
    require(program.mode == config.array.requantize, "mode must be the one of the core")
    require(1 <= program.batch <= 0xFFFF, f"batch must be in 1..65535, not {program.batch}")
    fits = program.batch == 1 or not program.states
    require(fits, f"batch must be 1 with variables, not {program.batch}")
    _areas(program)
    for step in program.host:
        require(not core_works(step.work), "a command stream must be for another core")
        require(
            not step.placement.on_weft or step.estimate is not None,
            "a product on the core must have an estimate",
        )
    for step in (*program.steps, *program.renamed):
        require(
            len(step.operators) > 0 and len(step.position) > 0
            and all(0 <= place < len(program.operators) for place in step.position),
            "position must be in the file's operators",
        )
    for part in program.setup:
        _list(part, program, 0)
    _variables(program)
    for segment in program.segments:
        _segment(program, segment)


def _segment(program, segment):
    """The layers and the maps of a list fit the list."""
    require(len(segment.steps) > 0, "a list must have layers")
    jobs = 0
    for step in segment.steps:
        require(step.first_job == jobs and step.jobs > 0, "jobs must follow each other")
        jobs += step.jobs
        last = len(program.tensors) - 1
        fits = len(step.inputs) > 0 and all(0 <= number <= last for number in step.inputs)
        require(fits, f"inputs of a layer must be in 0..{last}, not {step.inputs}")
    on_core = [entry for entry in segment.renamed if entry.place is not None]
    for entry in (*segment.results, *segment.steps, *on_core):
        _place(program, entry.place, entry.tensor)
    for entry in segment.renamed:
        if entry.place is None:
            _reshaped(program, entry)
    for entry in segment.written:
        _written(program, entry)
    require(
        not segment.result_bytes or len(segment.results) == 1, "DONE must carry the only result"
    )
    _list(segment.run, program, jobs, segment.result_bytes)


def _written(program, entry):
    """A map that the host writes."""
    form = entry.form
    _place(program, entry.place, form.tensor, form.map_size if _is_form(form) else None)
    size = form.height * form.width * form.channels
    require(
        _channels(program.tensors[form.tensor]) == size,
        "a written map must have the size of its tensor",
    )


def _channels(tensor):
    """The channels of all pixels of a map: a value of int16 is two of them."""
    return math.prod(tensor.shape) * (2 if tensor.dtype == INT16 else 1)


def _variables(program):
    """The maps of variables that stay in the memory."""
    states = {state.before for state in program.states}
    seen = set()
    for entry in program.variables:
        number = entry.form.tensor
        require(number in states, "a map of a variable must have the tensor of one")
        require(number not in seen, "a variable must have one map")
        _written(program, entry)
        seen.add(number)


def _reshaped(program, entry):
    """A tensor of the host with another shape."""
    last = len(program.tensors) - 1
    for number in (entry.tensor, entry.source):
        require(0 <= number <= last, f"a tensor must be in 0..{last}, not {number}")
    tensors = program.tensors[entry.tensor], program.tensors[entry.source]
    sizes = {math.prod(tensor.shape) for tensor in tensors}
    require(len(sizes) == 1, "a reshaped tensor must have the size of its source")


def _areas(program):
    """The sizes of all parts of the memory."""
    config, depth = program.config, program.config.array.depth
    areas = program.areas
    names = _AREAS | ({"products"} if program.products else set())
    names |= {"product_lists"} if program.products and config.program_words else set()
    fits = not program.whole or config.program_words > 0 and not program.products
    require(fits, "a whole program must be for a core with a program memory, without products")
    if "kept" in areas:
        require(config.program_words > 0 and not program.whole, "areas must have no kept bytes")
        names = names | {"kept"}
    require(set(areas) == names, f"areas must be {', '.join(sorted(names))}")
    require(all(isinstance(n, int) and n >= 0 for n in areas.values()), "areas must be bytes")
    require(program.memory_used <= config.memory_bytes, "areas must fit the memory")
    fits = program.program_memory_used <= config.program_bytes
    require(fits, "areas must fit the program memory")
    require(
        program.arena * program.batch * depth == areas["maps"]
        and setup_bytes(program.setup, config) == areas["setup"]
        and sum(len(part) for each in program.segments for part in (each.run, each.stream))
        == sum(areas[name] for name in ("list", "weights", "parameters", "tables")),
        "areas must have the sizes of their contents",
    )
    first = stream = areas["setup"]
    if not program.layout.program_words:
        first = max(areas["maps"], first)
    elif "kept" in areas:
        first = areas["maps"]
        kept = sum(len(segment.run) for segment in program.segments) + areas["log"]
        require(areas["kept"] == kept, "areas must have the sizes of their contents")
    for segment in program.segments:
        require(segment.run_first * depth == first, "lists must follow each other")
        first += len(segment.run)
        if "kept" in areas:
            require(segment.stream_first * depth == stream, "streams must follow each other")
            stream += len(segment.stream)
        else:
            require(not segment.stream, "only a list on the chip must have a stream")
    require(program.log * depth == first, "the log must follow the lists")
    for step in program.products:
        for work in list_products(step.work):
            shape = shape_of(work, program.tensors, program.batch)
            try:
                block_sizes(config, *shape, 4, program.products_space)
            except ValueError as error:
                raise ModelError(f"products must fit their area: {error}") from error


def _is_form(form):
    return min(form.height, form.width, form.channels, *form.block) > 0 and all(
        0 <= offset < block for offset, block in zip(form.offset, form.block, strict=True)
    )


def _place(program, place: PlacedMap, tensor, size=()):
    """The place of a map with the values of a tensor; ``size`` is another size of the map."""
    last = len(program.tensors) - 1
    require(0 <= tensor <= last, f"a tensor must be in 0..{last}, not {tensor}")
    require(min(place.height, place.width, place.channels) > 0, "a map must not be empty")
    pitches, vectors = place.pitches, -(-place.channels // program.config.array.depth)
    # A map may lie column by column: each of the steps reaches beyond the smaller ones.
    reach = vectors
    for step, count in sorted(
        ((pitches.pitch, place.width), (pitches.row_pitch, place.height))
    ):
        require(count == 1 or step >= reach, "a map must lie in the area of maps")
        reach += (count - 1) * step
    require(
        place.first >= 0 and pitches.vectors == reach
        and place.first + pitches.vectors <= program.arena,
        "a map must lie in the area of maps",
    )
    if size == ():
        channels = place.height * place.width * place.channels
        fits = _channels(program.tensors[tensor]) == channels
        require(fits, "a map must have the size of its tensor")
    else:
        require(size == (place.height, place.width, place.channels), "a map must fit its form")


def _list(data, program, jobs, result_bytes=0):
    """The descriptors from the start of ``data`` to the end of the list."""
    if not data and not jobs:
        return
    try:
        entries = unpack_list(data)
    except ValueError as error:
        raise ModelError(f"a list is damaged: {error}") from error
    found = sum(isinstance(entry, ListJob) for entry in entries)
    loops = [entry.times for entry in entries if isinstance(entry, ListLoop)]
    require(found == jobs, f"a list must have {jobs} jobs, not {found}")
    if jobs:
        require((*loops, 1)[0] == program.batch, "a list must repeat its jobs for a batch")
        require(
            entries[-1].result_bytes == result_bytes <= _MAX_RESULT,
            "the result must be as the list says",
        )
