"""What a network does where, in lines: shares, reasons of the host, operators of cores."""

import contextlib
import dataclasses
import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from weft.config import ConfigError
from weft.design import PerKind
from weft.frames import WRITE_FIELDS
from weft.models.network_core.list_steps import FRAME, frames
from weft.models.network_core.operators.filters import is_filter
from weft.models.network_core.operators.lstm import NO_UNIT as NO_LSTM
from weft.models.network_core.operators.reductions import NO_UNIT
from weft.models.network_core.program import NetworkCoreProgram, NetworkCoreSegment
from weft.models.network_core.tensor_maps import input_writes
from weft.models.network_core.wide_maps import NO_INT16
from weft.models.program import NO_MAP_PRODUCT, CompiledNetwork, Program, Step
from weft.models.report.streams import step_streams
from weft.models.work import host_products, list_products
from weft.network_core.config import MAX_SOFTMAX, NetworkCoreConfig

__all__ = [
    "KERNELS", "explanation", "left_out_json", "link_bytes", "link_seconds", "list_bytes",
    "operator_lines", "placement_line", "reason_lines", "reasons_of", "remedy_of", "time_text",
]

# Names in TensorFlow Lite, by the kernels that `weft.models.network_core.operators` lowers.
KERNELS = {
    "broadcast": ("BROADCAST_TO",), "concatenation": ("CONCATENATION",), "filter": ("SVDF",),
    "gather": ("GATHER",), "lstm": (),
    "litert.add": ("ADD", "SUB"), "litert.mul": (), "litert.resize_bilinear": ("RESIZE_BILINEAR",),
    "litert.sum": ("MEAN", "SUM"), "maximum": ("MAXIMUM",), "minimum": ("MINIMUM",),
    "mirror_pad": ("MIRROR_PAD",), "pad": ("PAD", "PADV2"),
    "rearrange": ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), "reduce_max": ("REDUCE_MAX",),
    "reduce_min": ("REDUCE_MIN",), "reverse": ("REVERSE_V2",), "slice": ("SLICE", "STRIDED_SLICE"),
    "split": ("SPLIT", "SPLIT_V"), "stack": ("PACK",), "tflite.add": ("ADD",),
    "tflite.average_pool": ("AVERAGE_POOL_2D",), "tflite.max_pool": ("MAX_POOL_2D",),
    "tflite.mean": ("MEAN",), "tflite.mul": (), "tflite.prelu": ("PRELU",),
    "tflite.resize_bilinear": ("RESIZE_BILINEAR",),
    "tflite.resize_nearest": ("RESIZE_NEAREST_NEIGHBOR",), "tflite.softmax": (),
    "tflite.squared_difference": ("SQUARED_DIFFERENCE",),
    "tflite.sub": ("SUB",), "tflite.sum": ("SUM",), "tile": ("TILE",), "transpose": ("TRANSPOSE",),
    "unstack": ("UNPACK",),
}
_OTHERS = (  # products, new names, and functions of one byte
    "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV",
    "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "MUL by constants", "ABS", "ELU", "GELU", "HARD_SWISH",
    "LEAKY_RELU", "LOGISTIC", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
    "RSQRT", "TANH",
)
_ONNX = (
    "Add", "AveragePool", "Concat", "Conv", "Flatten", "Gemm", "GlobalAveragePool", "MatMul",
    "MaxPool", "Pad", "QLinearAdd", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool",
    "QLinearMatMul", "ReduceMean", "Reshape", "functions of one value",
)
_OPTIONS = {
    "multiply_maps": "MUL of two maps", "softmax": "SOFTMAX",
    "lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM", "int16": "tensors and states of int16",
}


def operator_lines(config: NetworkCoreConfig) -> list[str]:
    """Return lines with the operators that a core computes without the host."""
    rule = "if their maps have 8 bits and their results are exact"
    if config.array.requantize == "onnx":
        return [f"operators of ONNX, {rule}: {', '.join(_ONNX)}"]
    options = {field: text for field, text in _OPTIONS.items() if _may_have(config, field)}
    names = {name for group in KERNELS.values() for name in group}
    names |= {*_OTHERS, *(text for field, text in options.items() if getattr(config, field))}
    return [
        f"operators of TensorFlow Lite, {rule} (docs/operators.md): {', '.join(sorted(names))}"
    ] + [
        f"with {field} = true in [network_core] also: {text}"
        for field, text in options.items() if not getattr(config, field)
    ]


def _may_have(config, option):
    """Whether a core with these other fields may have an option."""
    with contextlib.suppress(ConfigError):
        dataclasses.replace(config, **{option: True})
        return True
    return False


_START = 8  # bytes of payload
_DONE = 8  # bytes of payload before the result


def link_bytes(program: NetworkCoreProgram) -> tuple[int, int]:
    """Return the bytes to the core and from it for one inference: frames with their headers.

    The core acknowledges each WRITE and the START. The results that DONE does not carry are read
    with frames of their own. Products between the lists are predicted for random operands: rows
    that are equal to those before are not sent again.
    """
    sizes = [list_bytes(program, segment) for segment in program.segments]
    sizes += [
        (step.estimate.bytes_in // program.batch, step.estimate.bytes_out // program.batch)
        for step in program.products if step.estimate
    ]
    return sum(sent for sent, _ in sizes), sum(received for _, received in sizes)


def link_seconds(program: NetworkCoreProgram) -> float | None:
    """Return the time of `link_bytes`; None without a serial port.

    The result follows the input, so the bytes of both directions count.
    """
    return program.target.wire_seconds(sum(link_bytes(program)), 0)


def list_bytes(program: NetworkCoreProgram, segment: NetworkCoreSegment) -> tuple[int, int]:
    """Return the bytes to the core and from it for one list of one inference."""
    sent = FRAME + _START
    received = 2 * FRAME + _DONE + segment.result_bytes  # ACK and DONE
    for entry in segment.written:
        tensor = program.tensors[entry.form.tensor]
        zeros = np.zeros(tensor.shape, tensor.dtype)
        for write in input_writes(entry, zeros, tensor.dtype, program.config, 0):
            row = write.get("run", 0) * write.get("pixels", 0)
            size = len(write["data"])
            count = frames(size, row or 1, program.config.write_bytes)
            sent += size + count * (FRAME + WRITE_FIELDS)
            received += count * FRAME
    if not segment.result_bytes:
        for result in segment.results:
            size = result.place.pitches.vectors * program.config.array.depth
            count = -(-size // 1024)
            sent, received = sent + count * (FRAME + 8), received + count * FRAME + size
    return sent, received


def explanation(program: CompiledNetwork) -> list[str]:
    """The placement line of a program, the reasons, and the notes."""
    return [placement_line(program), *reasons_of(program), *program.notes]


def placement_line(program: CompiledNetwork) -> str:
    """One line for people: operators on Weft and on the host, oracle, and cost of an inference.

    ::

        kws: 10 of 13 operators on Weft (100 % of 2,656,768 MAC), 3 on the host (AVERAGE_POOL_2D,
        RESHAPE, SOFTMAX); equal to TFLite Micro in mode tflite; ulx3s-85f: 0.42 ms core, ...

    Without a clock the cost is in cycles; without a serial port it has no time on the wire. A
    network core that computes single products only has no cost here.
    """
    place, cost = _PLACES.of(program)(program), _COSTS.of(program)(program)
    return (
        f"{program.name}: {_operators(program)}; {program.exactness.claim};"
        f" {program.target.name}{place}: {cost}"
    )


def _operators(program):
    """``10 of 13 operators on Weft (100 % of 2,656,768 MAC), 3 on the host (ADD, SOFTMAX)``.

    MAC that are left out count where the others of the operator are computed.
    Operators that nothing executes are not counted: constants, new names, and the conversions
    around another operator.
    """
    host = set(program.host)
    steps = [step for step in program.steps if step not in host or step.placement.on_weft]
    on_weft = {place for step in (*steps, *program.renamed) for place in step.position}
    run = on_weft.union(*(step.position for step in program.steps))
    rest = [program.operators[n] for n in sorted(run - on_weft)]
    text = f"{len(on_weft)} of {len(run)} operators on Weft"
    total = _macs_of(program.steps)
    if total:
        text += f" ({_percent(_macs_of(steps) / total)} of {total:,} MAC)"
    if rest:
        text += f", {len(rest)} on the host ({', '.join(dict.fromkeys(rest))})"
    return text


def _macs_of(steps):
    """The multiply-accumulate operations in the file."""
    return sum(step.macs + step.left_out for step in steps)


def left_out_json(program: CompiledNetwork) -> dict[str, int] | None:
    """Return the numbers of what a program does not compute; None if it computes all."""
    found = program.left_out
    return None if found is None else {"channels": found.channels, "macs": found.macs}


def reasons_of(program: CompiledNetwork) -> list[str]:
    """A line for each operator that another runtime runs, or of which the host computes a part.

    Operators without a product that the host computes with its own kernels are left out: the
    placement line names them. But those between the lists of a network core have a line.
    """
    notable = _NOTABLE.of(program)(program)
    return reason_lines(
        ("+".join(step.operators), step.placement.on_weft, step.placement.reason,
         remedy_of(program, step))
        for step in program.host
        if step.macs or step in notable or getattr(step.work, "kernel", "").endswith(".model")
    )


# Kernels that a network core computes, if their maps are of 8 bits (`division`).
_ON_CHIP = {
    "concatenation", "litert.add", "litert.sum", "maximum", "minimum", "onnx.add",
    "onnx.average_pool", "onnx.global_average_pool", "onnx.max_pool", "onnx.qlinear_add",
    "onnx.qlinear_concat", "onnx.qlinear_global_average_pool", "onnx.reduce_mean", "pad",
    "reduce_max", "reduce_min", "reshape", "table", "tflite.add", "tflite.average_pool",
    "tflite.max_pool", "tflite.mean", "tflite.sub", "tflite.sum",
}


_MAP_PRODUCTS = {"litert.mul", "tflite.mul"}  # the same of one with multiply_maps


def remedy_of(program: CompiledNetwork, step: Step) -> str:
    """What would bring the work of the host to a core, or what the core computes of it, for people.

    Empty if the host has none.
    """
    given, work = step.placement, step.work
    if given.field:
        saves = f" (saves {given.extra_bytes:,} bytes of results)" if given.extra_bytes else ""
        return f"{given.field} in the Config changes this{saves}"
    if given.reason == NO_LSTM:
        return "a network core with lstm = true in [network_core] computes it"
    if given.reason == NO_INT16:
        return "a network core with int16 = true in [network_core] computes it"
    if list_products(work):
        return "the core computes its products one by one, over the link"
    if given.on_weft or not given.reason:
        return ""
    if given.reason == NO_MAP_PRODUCT:
        return "a network core with multiply_maps = true computes it"
    products, executes_lists = host_products(work), program.target.executes_lists
    if any(program.tensors[part.x].dtype == np.float32 for part in products):
        return "a product core with dtype=bf16 computes its products"
    if products and executes_lists:
        return "a product core computes its products"
    kernel = getattr(work, "kernel", "")
    if is_filter(kernel, getattr(work, "attributes", {})):  # a network core gives its own reason
        return "" if executes_lists else "a network core may compute it (docs/operators.md)"
    if not executes_lists and kernel in _ON_CHIP:
        mode = " with requantize = 'onnx'" if program.source == "onnx" else ""
        return f"a network core{mode} computes it, if its maps are of 8 bits"
    if not executes_lists and kernel in KERNELS and program.source == "tflite" and (
        kernel not in _MAP_PRODUCTS and kernel != "tflite.softmax"
    ):
        return "a network core may compute it (docs/operators.md), if its maps are of 8 bits"
    if not executes_lists and kernel in _MAP_PRODUCTS and program.source == "tflite":
        return (
            "a network core with multiply_maps = true computes it, if its maps are of 8 bits and"
            " of equal shapes"
        )
    other = not executes_lists or given.reason == NO_UNIT  # otherwise the core refused its maps
    if kernel == "tflite.softmax" and other and _fits_softmax(program, step):
        return "a network core with softmax = true in [network_core] computes it"
    return "no core computes it"


def _fits_softmax(program, step):
    """Whether the rows of a SOFTMAX fit the unit that a network core may have."""
    x, y = (program.tensors[number] for number in (step.inputs[0], step.outputs[0]))
    return x.dtype == y.dtype and x.shape[-1] <= MAX_SOFTMAX and math.prod(x.shape[:-3]) == 1


def reason_lines(placed: Iterable[tuple[str, bool, str, str]]) -> list[str]:
    """Lines for operators that the host computes, wholly or in part, and why; equal ones once.

    ``placed`` has operator, whether the core computes its products, reason, and what would change
    this (`remedy_of`).
    """
    seen: Counter = Counter()
    for operator, on_weft, reason, remedy in placed:
        if reason:
            seen[operator, on_weft, f"{reason}; {remedy}" if remedy else reason] += 1
    return [
        f"{'partly ' if on_weft else ''}on the host: {operator}"
        f"{f' ({count} times)' if count > 1 else ''}: {reason}"
        for (operator, on_weft, reason), count in seen.items()
    ]


def _product_core_cost(program: Program):
    target, cycles = program.target, program.estimate.cycles
    if target.by_lists:
        return "single products on the core"
    moved = [step_streams(program, step) for step in program.steps if step.placement.on_weft]
    if not moved:
        return "the core is not used"
    wire = None
    if target.baud is not None:
        wire = sum(target.wire_seconds(step.sent, step.received) for step in moved)
    return _cost(target, cycles, wire)


def _network_core_cost(program: NetworkCoreProgram):
    if not program.segments:
        return "the core is not used"
    return _cost(program.target, program.cycles // program.batch, link_seconds(program))


def _cost(target, cycles, wire):
    """The text for cycles of the core, and for seconds on the wire or None."""
    core = target.core_seconds(cycles)
    text = f"{cycles:,} cycles" if core is None else f"{time_text(1e3 * core)} core"
    return text if wire is None else f"{text}, {time_text(1e3 * wire)} wire"


def _lists(program: NetworkCoreProgram):
    """The lists of a network, after the name of its target."""
    count = len(program.segments)
    if count == 1 and not program.host:
        return ", whole network on the core"
    if not count:
        return ""
    lists = "one list" if count == 1 else f"{count} lists"
    return f", {lists}{' and single products' if program.products else ''} on the core"


# By the kind of core: words after the name of the target, the cost, and the steps of the host that
# are notable without a product.
_PLACES = PerKind(product=lambda program: "", network=_lists)
_COSTS = PerKind(product=_product_core_cost, network=_network_core_cost)
_NOTABLE = PerKind(
    product=lambda program: {step for step in program.steps if step.placement.field},
    network=lambda program: {step for part in program.segments[1:] for step in part.before},
)


def time_text(milliseconds: float) -> str:
    """``96 ms``, ``0.38 ms``, ``10.5 us``: a time is never rounded to 0."""
    if milliseconds < 0.1:
        return f"{1e3 * milliseconds:.3g} us"
    digits = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2
    return f"{milliseconds:,.{digits}f} ms"


def _percent(share):
    """A percentage that is 100 only if the share is whole."""
    text = f"{100 * share:.2f}".rstrip("0").rstrip(".")
    return "over 99.99 %" if text == "100" and share < 1 else f"{text} %"
