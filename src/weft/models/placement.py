"""Where a product runs, what the host computes of it, and how its weights reach the core."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.commands import Job
from weft.config import Config
from weft.geometry import memories, operands
from weft.host.planner import Planner
from weft.models.arithmetic import shifted_zero
from weft.models.ir import Gemm, Tensor
from weft.models.lowering import PairRows
from weft.models.work import CoreWork

__all__ = ["Decision", "commands_of", "decide", "mode_of", "schedule"]


_MAX_K = 131_071  # largest K for which all sums of int8 products fit int32


@dataclass(frozen=True)
class Decision:
    """Where a product runs.

    Attributes
    ----------
    on_weft : bool
        Whether the core computes the products.
    requantizes : bool
        Whether the core converts the sums, too.
    reason, field : str
        As in `weft.models.program.Placement`.
    """

    on_weft: bool
    requantizes: bool = False
    reason: str = ""
    field: str = ""


def mode_of(source: str, config: Config) -> str:
    """Return the rounding mode of a network on a Config.

    TFLite's runtimes have two, and the Config decides; ONNX has one.
    """
    if source == "onnx":
        return "onnx"
    return config.requantize if config.requantize in ("tflite", "single") else "tflite"


def decide(gemm: Gemm, tensors: tuple[Tensor, ...], config: Config, mode: str) -> Decision:
    """Decide where a product runs."""
    x = tensors[gemm.x].dtype
    b = gemm.weights.dtype if gemm.b is None else tensors[gemm.b].dtype
    wanted = "bf16" if x == np.float32 else "int8"
    if wanted != config.dtype:
        return Decision(False, reason=f"{x} product", field=f"dtype={wanted}")
    if x == np.float32:
        return _float(gemm, config)
    if b == np.int16:
        return Decision(False, reason="both operands are int16")
    if x == np.int16 and gemm.weights is not None and gemm.weights.shape[1] > _MAX_K:
        return Decision(False, reason=f"int16 product with K over {_MAX_K}")
    given = gemm.requantization
    if given is None:
        return Decision(True)
    if given.dtype == np.int16:
        return Decision(
            True, reason="int16 results: the host requantizes sums of two products"
        )
    if config.requantize != mode:
        return Decision(
            True, reason=f"requantization in mode {mode}: the host converts raw sums",
            field=f"requantize={mode}",
        )
    if np.any(shifted_zero(gemm.w_zero, b)) and config.b_zero_point == "none":
        operand = "weights have zero points" if gemm.b is None else "operand B has a zero point"
        return Decision(
            True, reason=f"{operand}: the host corrects raw sums",
            field="b_zero_point=column",
        )
    return Decision(True, requantizes=True)


def _float(gemm, config):
    if gemm.bias is not None and not config.c_words:
        return Decision(True, reason="the host adds the bias", field="c_words=1024")
    if gemm.activation != "none" and config.activation != "clamp":
        return Decision(
            True, reason=f"the host computes {gemm.activation}", field="activation=clamp"
        )
    return Decision(True)


def commands_of(config: Config, shape, flags, *, free=None):
    """Return the headers of products of one ``shape``, (count, m, k, n), with streamed weights.

    ``free`` is the range of pages of B to use.
    """
    count, m, k, n = shape
    a, b = operands(config)
    planner = Planner(config, [(0, a.pages), free or (0, b.pages)])
    return [
        command
        for _ in range(count)
        for step in planner.plan(m, n, k, flags=flags)
        for command in step.commands
    ]


def schedule(
    works: Sequence[CoreWork], config: Config, times: Sequence[int],
) -> tuple[list[CoreWork], list[str]]:
    """Return the works in their order with pages for their weights, and how each gets them.

    Weights stay in the core if they fit, those first that save most bytes per inference. The pages
    that remain are for all others. How many remain is tried: the fewest bytes on the command stream
    win. Weights that are not resident load under the step before, if the pages allow that.

    ``times`` has a number for each work. 0: an inference computes it once. Another number: it is
    a product of a recurrent layer, which an inference computes so often. Its weights stay, or they
    are sent each time.
    """
    if not works:
        return [], []
    total = operands(config)[1].pages
    pages = [_pages(work) for work in works]
    fixed = [n for n, work in enumerate(works) if not isinstance(work.rows, PairRows)]
    saved = {
        n: (len(works[n].packed.b) + len(works[n].packed.parameters)) * max(1, times[n])
        for n in fixed
    }
    order = sorted(fixed, key=lambda n: (-saved[n], n))

    def streamed_bytes(number, free):
        once = _streamed_bytes(config, works[number].shape(), works[number].flags, free)
        return once * max(1, times[number])

    best, seen = None, set()
    for reserve in _reserves(pages, total, all_fixed=len(fixed) == len(works)):
        resident, used = set(), 0
        for n in order:
            if used + pages[n] <= total - reserve:
                resident.add(n)
                used += pages[n]
        rest = [n for n in range(len(works)) if n not in resident]
        if rest and used == total or frozenset(resident) in seen:
            continue
        seen.add(frozenset(resident))
        cost = sum(streamed_bytes(n, total - used) for n in rest)
        cost += sum(streamed_bytes(n, total) - saved[n] for n in resident)
        if best is None or (cost, -used) < best[0]:
            best = (cost, -used), resident, total - used
    _, resident, free = best
    return _place(works, pages, resident, free, total, times)


def _reserves(pages, total, all_fixed):
    """Return numbers of pages to try for weights that are not resident."""
    if all_fixed and sum(pages) <= total:
        return [0]
    tried = {total, total // 2, total // 4, total // 8, *pages, *(2 * p for p in pages)}
    return sorted(reserve for reserve in tried if 0 < reserve <= total)


def _place(works, pages, resident, free, total, times):
    """Return the works with the pages of their weights, and how each gets them."""
    placed: list[CoreWork] = []
    kinds: list[str] = []
    top = total
    region = range(0)  # pages that the step before uses
    for number, work in enumerate(works):
        if number in resident:
            top -= pages[number]
            placed.append(dataclasses.replace(
                work, b_pages=_first_pages(work, pages[number], top), free=(0, free)
            ))
            kinds.append("resident")
            region = range(0)
            continue
        start, pair = None, isinstance(work.rows, PairRows)
        if number and not pair and not times[number - 1] and not times[number]:
            start = _early_region(pages[number], region, free, placed, kinds, pages)
        if start is None:
            placed.append(dataclasses.replace(work, free=(0, free)))
            kinds.append("activation" if pair else "streamed")
            region = range(free)
        else:
            placed[-1] = dataclasses.replace(placed[-1], early=number)
            placed.append(dataclasses.replace(
                work, b_pages=_first_pages(work, pages[number], start), free=(0, free)
            ))
            kinds.append("early")
            region = range(start, start + pages[number])
    return placed, kinds


def _early_region(size, region, free, placed, kinds, pages):
    """Return the first page for weights that load under the step before, or None.

    A step with streamed weights before gives up pages if its own weights fit without them.
    """
    if size <= region.start:
        return 0
    if region.stop + size <= free:
        return free - size if region.stop <= free - size else None
    if kinds[-1] == "streamed" and pages[len(placed) - 1] + size <= free:
        placed[-1] = dataclasses.replace(placed[-1], free=(0, free - size))
        return free - size
    return None


def _pages(work):
    """Return the pages of all weights of a step."""
    b = operands(work.config)[1]
    count, _, k, n = work.shape()
    return count * b.panels(n) * b.panel_pages(k)


def _first_pages(work, pages, start):
    count = work.rows.count
    return tuple(start + index * (pages // count) for index in range(count))


@functools.lru_cache(maxsize=4096)
def _streamed_bytes(config, shape, flags, free):
    """Return the bytes on the command stream of products with ``free`` pages for their B."""
    count, *size = shape
    return count * _bytes(commands_of(config, (1, *size), flags, free=(0, free)), config)


def _bytes(commands, config):
    """Return the bytes on the command stream of headers and of the data that they load."""
    geometry = memories(config)
    header = max(32, config.bytes_in)
    total = 0
    for command in commands:
        total += header
        if not isinstance(command, Job):
            operand = geometry[command.operand]
            lines = -(-command.words // operand.group) * operand.segments
            total += command.panels * lines * operand.stream
    return total
