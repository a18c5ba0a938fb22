"""Checks that the parts of a program fit together, before anything is run."""

import math
from typing import TYPE_CHECKING

from weft.commands import JobFlag, Region, supported_flags
from weft.geometry import memories
from weft.models.arithmetic import FloatFinish, IntegerFinish
from weft.models.errors import ModelError, require
from weft.models.kernels import RECURRENT
from weft.models.lowering import MatrixRows, PairRows, WindowRows
from weft.models.work import CoreWork, HostWork, RecurrentWork, core_works, list_products

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork, Program, Step

__all__ = ["check", "check_product_core_program"]

MODES = ("tflite", "single", "onnx")
_FLAGS = (  # of a step; each of its commands has the other flags
    JobFlag.REQUANTIZE | JobFlag.TABLE | JobFlag.PRELOAD | JobFlag.BROADCAST | JobFlag.CLAMP
    | JobFlag.ROUND
)
_MAX_ELEMENTS = 1 << 31  # of a tensor, and of an operand of a product


def check(program: "CompiledNetwork") -> None:
    """Raise ModelError if a part that programs of all cores have does not fit the others."""
    for what, value, known in (
        ("source", program.source, ("tflite", "onnx")), ("mode", program.mode, MODES),
    ):
        require(value in known, f"{what} must be one of {', '.join(known)}, not {value!r}")
    for what in ("clock", "baud"):
        rate = getattr(program.target, what)
        fits = rate is None or 0 < rate < 1e12
        require(fits, f"{what} must be above 0 and below 1e12, not {rate}")
    for number, tensor in enumerate(program.tensors):
        require(
            all(axis >= 0 for axis in tensor.shape) and math.prod(tensor.shape) <= _MAX_ELEMENTS,
            f"tensor {number} must have a shape of at most {_MAX_ELEMENTS} elements",
        )
        if tensor.data is not None:
            fits = tensor.data.shape == tensor.shape and tensor.data.dtype == tensor.dtype
            require(fits, f"data of tensor {number} must have its shape and type")
        given = tensor.quantization
        if given is not None:
            require(
                given.scale.ndim == 1 and given.scale.shape == given.zero.shape
                and (len(given.scale) == 1 or 0 <= given.axis < len(tensor.shape)
                     and len(given.scale) == tensor.shape[given.axis]),
                f"quantization of tensor {number} must have a scale for each slice",
            )
    _numbers("inputs", program.inputs, program, 0)
    _numbers("outputs", program.outputs, program, 0)
    for what in ("absolute", "relative"):
        limits = getattr(program.exactness, what)
        fits = len(limits) == len(program.outputs) and all(0 <= n < math.inf for n in limits)
        require(fits, f"exactness must have a finite limit for each output, {what}: {limits}")
    if program.left_out is not None:
        found = program.left_out
        _numbers("left_out", found.tensors, program, 0)
        fits = 0 <= found.channels < 1 << 53 and 0 <= found.macs < 1 << 53
        require(fits, f"left_out must have channels and MAC of 0 or more, not {found}")
    _states(program)
    for number, step in enumerate(program.host):
        try:
            _step(program, number, step)
            on_weft = len(core_works(step.work)) + len(list_products(step.work)) > 0
            require(
                step.placement.on_weft == on_weft, f"on_weft must be {on_weft}, as its work says"
            )
        except ModelError as error:
            raise ModelError(f"step {number}: {error}") from error


def check_product_core_program(program: "Program") -> None:
    """Raise ModelError if a part of a program for a product core does not fit the others."""
    check(program)
    for number, step in enumerate(program.steps):
        require(not list_products(step.work), f"step {number}: lists must be for a network core")


def _numbers(what, numbers, program, low):
    last = len(program.tensors) - 1
    for number in numbers:
        require(low <= number <= last, f"{what} must be tensors in {low}..{last}, not {number}")


def _states(program):
    """The variables: their tensors, and the types and shapes of these."""
    begun = [*program.inputs, *(state.before for state in program.states)]
    for state in program.states:
        what = f"variable {state.name[:80]!r}"
        require(state.name != "", "a variable must have a name")
        _numbers(f"tensors of {what}", (state.before, state.after), program, 0)
        for number in (state.before, state.after):
            tensor = program.tensors[number]
            require(
                (tensor.shape, tensor.dtype) == (state.initial.shape, state.initial.dtype),
                f"{what} must have one shape and type: its initial value has"
                f" {state.initial.shape} {state.initial.dtype}, tensor {number} has"
                f" {tensor.shape} {tensor.dtype}",
            )
        require(begun.count(state.before) == 1, f"{what} must have a tensor of its own")


def _step(program, number, step: "Step"):
    _numbers("inputs", step.inputs, program, -1)
    _numbers("outputs", step.outputs, program, 0)
    require(len(step.position) > 0 and len(step.operators) > 0, "it must have an operator")
    has_input = len(step.inputs) > 0 and step.inputs[0] >= 0
    require(step.macs == 0 or has_input, "a product must have an input")
    require(
        all(0 <= place < len(program.operators) for place in step.position),
        "position must be in the file's operators",
    )
    work = step.work
    if isinstance(work, HostWork):
        return
    if isinstance(work, RecurrentWork):
        _recurrent(program, step)
        return
    _numbers("x and b", [n for n in (work.x, work.b) if n is not None], program, 0)
    require(len(step.outputs) == 1, "a product must have one output")
    _product(program, step, work, math.prod(program.tensors[step.outputs[0]].shape))
    if isinstance(work, CoreWork):
        _early(program, number, work)


def _recurrent(program, step):
    work = step.work
    require(work.kernel in RECURRENT, f"kernel must be one of {', '.join(RECURRENT)}")
    require(work.steps > 0 and len(work.products) > 0, "it must have steps and products")
    require(work.mode == program.mode, "mode must be the mode of the program")
    for part in work.products:
        _numbers("x", [part.x], program, 0)
        require(
            part.b is None and isinstance(part.rows, MatrixRows) and part.rows.k > 0,
            "products of a recurrent layer must have constant weights and no window",
        )
        size = math.prod(program.tensors[part.x].shape)
        _product(program, step, part, size // part.rows.k * part.rows.n)
        if isinstance(part, CoreWork):
            require(part.early == -1, "a recurrent layer must not load other weights")


def _product(program, step, work, results):
    """Check a product with so many results."""
    x = program.tensors[work.x]
    _rows(work.rows, x, None if work.b is None else program.tensors[work.b], results)
    _finish(work)
    if isinstance(work, CoreWork):
        _core(program, step, work)
        return
    shape = work.rows.count, work.rows.k, work.rows.n
    require(
        work.b is not None or work.weights is not None and work.weights.shape == shape,
        f"weights must be of shape {shape}",
    )


def _rows(rows, x, b, y_size):
    if isinstance(rows, WindowRows):
        window = rows.window
        positive = (
            rows.groups, rows.channels, rows.columns, rows.together, rows.neighbours,
            *window.kernel, *window.stride, *window.dilation, *window.input, *window.output,
            *window.spread,
        )
        require(min(positive) > 0, "numbers of a window must be 1 or more")
        require(rows.layout in ("NHWC", "NCHW"), "layout must be NHWC or NCHW")
        size = math.prod(window.input) * rows.groups * rows.channels
        results = math.prod(window.output) * rows.groups * rows.columns
        batch = math.prod(x.shape) // size
        fits = math.prod(x.shape) == batch * size and y_size == batch * results
        require(batch > 0 and fits, "x and y must fit the window")
        reach = sum(
            spread * size + (kernel * dilation) + stride * out + abs(before)
            for spread, size, kernel, dilation, stride, out, before in zip(
                window.spread, window.input, window.kernel, window.dilation, window.stride,
                window.output, window.padding[::2], strict=True,
            )
        )
        require(reach < 1 << 24, "a window must reach less than 2**24 inputs")
    elif isinstance(rows, PairRows):
        require(
            b is not None and rows.x_shape == x.shape and rows.b_shape == b.shape,
            "x and b must have the shapes of their tensors",
        )
        require(
            min(len(x.shape), len(b.shape)) >= 2 and min(rows.k, rows.n, rows.count) > 0,
            "x and b must be matrices that are not empty",
        )
    else:
        require(min(rows.k, rows.n) > 0, "k and n must be 1 or more")
        fits = math.prod(x.shape) % rows.k == 0
        require(
            fits and y_size == math.prod(x.shape) // rows.k * rows.n,
            "x and y must fit the weights",
        )
    elements = rows.count * rows.m(x.shape) * max(rows.k, rows.n)
    require(0 < elements <= _MAX_ELEMENTS, f"products must have 1..{_MAX_ELEMENTS} elements")


def _finish(work):
    rows, finish = work.rows, work.finish
    if isinstance(finish, FloatFinish):
        return
    counts = (1,) if isinstance(rows, PairRows) else (1, rows.count)
    shapes = [(count, rows.n) for count in counts]
    for name in ("w_zero", "bias", "column_sums"):
        array = getattr(finish, name)
        require(array is None or array.shape in shapes, f"{name} must be of shape {shapes[-1]}")
    require(finish.column_sums is not None or work.b is not None, "column_sums must be given")
    rescale = finish.rescale
    if rescale is not None:
        require(rescale.mode in MODES, "mode must be known")
        channels = rows.n
        if isinstance(rows, WindowRows):
            channels = rows.groups * rows.columns
        require(
            rescale.multiplier.shape == rescale.shift.shape == (channels,),
            f"multiplier and shift must be of shape {(channels,)}",
        )


def _core(program, step, work):
    config = program.target.array
    geometry = memories(config)
    require(work.x_shape == program.tensors[work.x].shape, "x_shape must be the shape of x")
    require(work.copies in (1, 2), "copies must be 1 or 2")
    require(
        not int(work.flags) & ~int(supported_flags(config) & _FLAGS), "flags must be supported"
    )
    require(
        JobFlag.REQUANTIZE not in work.flags or isinstance(work.finish, IntegerFinish)
        and work.finish.rescale is not None, "results must have scales",
    )
    require(step.estimate is not None, "a product on the core must have an estimate")
    b, count, (_, _, k, n) = geometry[Region.B], work.rows.count, work.shape()
    packed = work.packed
    pair = isinstance(work.rows, PairRows)
    panels = b.panels(n)
    sizes = {
        "b": 0 if pair else count * panels * b.panel_stream_words(k) * b.stream,
        "parameters": 0, "start": 0,
    }
    require(packed.products == (1 if pair else count), "operands must be for all products")
    if work.flags & (JobFlag.REQUANTIZE | JobFlag.CLAMP) and not (
        pair and JobFlag.REQUANTIZE in work.flags
    ):
        operand = geometry[Region.PARAMETERS]
        words = -(-config.cols // config.lanes) * operand.depth
        sizes["parameters"] = (
            packed.products * panels * operand.panel_stream_words(words) * operand.stream
        )
    if JobFlag.PRELOAD in work.flags:
        operand = geometry[Region.C]
        sizes["start"] = packed.products * panels * operand.panel_stream_words(1) * operand.stream
    for name, size in sizes.items():
        require(
            len(getattr(packed, name)) == size, f"{name} must have {size} bytes of packed operands"
        )
    require(
        (work.table is not None) == (JobFlag.TABLE in work.flags)
        and (work.table is None or work.table.shape == (256,) and work.table.dtype.itemsize == 1),
        "a table must have 256 entries of 8 bits",
    )
    require(work.table is not None or not work.loads_table, "a loaded table must be given")
    size, (first, free) = panels * b.panel_pages(k), work.free
    require(0 <= first and free >= 0 and first + free <= b.pages, "pages must be in the buffer")
    if work.b_pages is None:
        require(free > 0 and step.weights in ("streamed", "activation"), "pages must be free")
    else:
        stay = ("resident", "streamed" if isinstance(step.work, RecurrentWork) else "early")
        require(
            not pair and len(work.b_pages) == count and step.weights in stay
            and all(0 <= page <= b.pages - size for page in work.b_pages),
            "weights must lie in the buffer",
        )


def _early(program, number, work):
    if work.early != -1:
        require(
            number < work.early < len(program.steps)
            and program.steps[work.early].weights == "early"
            and isinstance(program.steps[work.early].work, CoreWork)
            and program.steps[work.early].work.b_pages is not None,
            "early must be a later step with early weights",
        )
