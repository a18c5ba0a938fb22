"""The placement line: which share of a network runs on Weft, and what one inference takes."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from weft.design import NETWORK
from weft.models.program import CompiledNetwork, Program, Step
from weft.models.report.streams import step_streams
from weft.models.work import HostProduct, RecurrentWork, list_products

__all__ = [
    "left_out_json", "operators_text", "placement_line", "reason_lines", "reasons_of", "remedy_of",
    "time_text",
]

# Kernels that a network core computes, if their maps are of 8 bits (`division`).
_ON_CHIP = {
    "concatenation", "litert.add", "litert.sum", "pad", "reshape", "table", "tflite.add",
    "tflite.average_pool", "tflite.mean",
}


def placement_line(program: Program) -> str:
    """One line for people: operators on Weft and on the host, oracle, and cost of an inference.

    ::

        kws: 10 of 13 operators on Weft (100 % of 2,656,768 MAC), 3 on the host (AVERAGE_POOL_2D,
        RESHAPE, SOFTMAX); equal to TFLite Micro in mode tflite; ulx3s-85f: 0.42 ms core, ...

    Without a clock the cost is in cycles; without a serial port it has no time on the wire. A core
    for networks that computes single products has no cost here.
    """
    on_weft = {n for step in program.steps if step.placement.on_weft for n in step.position}
    text = operators_text(program, on_weft, [s for s in program.steps if s.placement.on_weft])
    cost = _cost(program) if not program.target.by_lists else "single products on the core"
    return f"{program.name}: {text}; {program.exactness.claim}; {program.target.name}: {cost}"


def operators_text(program: CompiledNetwork, on_weft: set[int], steps) -> str:
    """``10 of 13 operators on Weft (100 % of 2,656,768 MAC), 3 on the host (ADD, SOFTMAX)``.

    ``on_weft`` are the places of operators in the file, ``steps`` those with products on the core.
    MAC that are left out count where the others of the operator are computed.
    Operators that nothing executes are not counted: constants, new names, and the conversions
    around another operator.
    """
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


def reasons_of(program: Program) -> list[str]:
    """A line for each operator that another runtime runs, or of which the host computes a part.

    Operators without a product that the host computes with its own kernels are left out: the
    placement line names them.
    """
    return reason_lines(
        ("+".join(step.operators), step.placement.on_weft, step.placement.reason,
         remedy_of(program, step))
        for step in program.steps
        if step.macs or step.placement.field or getattr(step.work, "kernel", "").endswith(".model")
    )


def remedy_of(program: CompiledNetwork, step: Step) -> str:
    """What would bring the work of the host to a core, or what the core computes of it, for people.

    Empty if the host has none.
    """
    given, work = step.placement, step.work
    if given.field:
        saves = f" (saves {given.extra_bytes:,} bytes of results)" if given.extra_bytes else ""
        return f"{given.field} in the Config changes this{saves}"
    if list_products(work):
        return "the core computes its products one by one, over the link"
    if given.on_weft or not given.reason:
        return ""
    parts = work.products if isinstance(work, RecurrentWork) else (work,)
    products = [part for part in parts if isinstance(part, HostProduct)]
    is_network_core = program.target.kind == NETWORK or program.target.by_lists
    if any(program.tensors[part.x].dtype == np.float32 for part in products):
        return "a product core with dtype=bf16 computes its products"
    if products and is_network_core:
        return "a product core computes its products"
    kernel = getattr(work, "kernel", "")
    if not is_network_core and kernel in _ON_CHIP and program.source == "tflite":
        return "a network core computes it, if its maps are of 8 bits"
    return "no core computes it"


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


def _cost(program):
    target, cycles = program.target, program.estimate.cycles
    if not any(step.placement.on_weft for step in program.steps):
        return "the core is not used"
    core = target.core_seconds(cycles)
    text = f"{cycles:,} cycles" if core is None else f"{time_text(1e3 * core)} core"
    if target.baud is None:
        return text
    moved = [step_streams(program, step) for step in program.steps if step.placement.on_weft]
    wire = sum(target.wire_seconds(step.sent, step.received) for step in moved)
    return f"{text}, {time_text(1e3 * wire)} wire"


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
