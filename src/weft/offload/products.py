"""Batched matrix products and convolutions of numpy arrays on an accelerator, for frameworks."""

import contextlib
import functools
import math
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, MutableMapping

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.geometry import memories
from weft.host.accelerator import Accelerator
from weft.host.product import Resident
from weft.host.product_stream import Packed, ProductStream
from weft.host.products import PRODUCTS, check_depth
from weft.offload.quantization import Quantized, StaticWeights, quantized
from weft.offload.record import Operator, Record, Sent, Shape
from weft.offload.windows import Patches, Window

__all__ = ["OffloadError", "Products", "product_stream", "weight_pages"]

FLOATS = (np.dtype(np.float32), np.dtype(bfloat16), np.dtype(np.float16))
_INT8, _INT32, _FLOAT32 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32)
_PART = 1 << 25  # bytes of A that are sent at once: larger products are cut into parts
_KEPT = 1 << 28  # bytes of the command streams and maps that are kept

Operand = np.ndarray | Quantized


class OffloadError(RuntimeError):
    """An operator failed on the accelerator; the message names it."""


def product_stream(config: Config, shape: Shape, free=None, b_pages=None) -> ProductStream:
    """The command stream of products of a shape whose A changes from run to run.

    Their B does so, too, unless it is in the buffer, from the pages ``b_pages`` on.
    """
    acc = config.data_type.acc.name
    return ProductStream(
        config, shape, JobFlag(0), Packed(), acc, computed_b=b_pages is None, b_pages=b_pages,
        free=free,
    )


def weight_pages(config: Config, shape: Shape) -> int | None:
    """Pages of a B that stays in the buffer; None if it needs more than half of the buffer.

    So the other half is left for operands that change.
    """
    count, _, k, n = shape
    operand = memories(config)[Region.B]
    pages = count * operand.panels(n) * operand.panel_pages(k)
    return pages if 2 * pages <= operand.pages else None


class Products:
    """Computes the products of a framework on an accelerator, and records them.

    On a bf16 core an operand of float32, float16 or bfloat16 is rounded to bfloat16, to nearest
    even. Each result is a chain of fused multiply-adds in float32, in ascending order of k, from
    +0; see `weft.golden.bf16.matmul_bf16`.

    On an int8 core an operand of these types becomes int8 (`weft.offload.quantization.quantized`):
    A with a scale for each row, B with one for each column, the map of a convolution with one for
    each group of channels of each image, and a kernel with one for each channel of the results. The
    result is::

        float32(sum) * (scale of A * scale of B)

    in float32, with the exact sum of int8 products. Products of int8 operands are exact in int32.

    A `Quantized` B stays in the core's buffer, as long as it lives and no call of the core fails.
    B that stay take at most half of the buffer; others are sent with each product.

    Threads may share it: `Accelerator` lets one product at a time use the core.

    Parameters
    ----------
    accelerator : Accelerator
        Behind any transport.
    dtype : str
        ``bf16`` or ``int8``; the type of the core.

    Attributes
    ----------
    accelerator : Accelerator
    record : Record

    Raises
    ------
    TypeError
        If ``accelerator`` is not an Accelerator.
    ValueError
        If ``dtype`` is not the type of the core.
    """

    def __init__(self, accelerator: Accelerator, dtype: str = "bf16"):
        if not isinstance(accelerator, Accelerator):
            raise TypeError(f"accelerator must be a weft.Accelerator, not {accelerator!r}")
        if dtype not in ("bf16", "int8"):
            raise ValueError(f"dtype must be bf16 or int8, not {dtype!r}")
        found = accelerator.config.dtype
        if found != dtype:
            raise ValueError(f"dtype must be {found!r}, the type of the core, not {dtype!r}")
        self.accelerator = accelerator
        self.record = Record()
        # Streams of products and maps, which further calls of the same shapes write again.
        self._kept: OrderedDict[tuple, ProductStream | Patches] = OrderedDict()
        self._bytes = 0  # of these
        # For each B that stays, and for each part of a kernel: it in the core's buffer.
        self._weights: MutableMapping[Quantized, dict[tuple, list[Resident]]] = (
            weakref.WeakKeyDictionary()
        )
        self._contents = accelerator.contents  # of the buffer, when these were loaded
        self._freed: deque[list[Resident]] = deque()  # of B that do not live any more

    @property
    def quantizes(self) -> bool:
        """Whether float operands become int8."""
        return self.accelerator.config.dtype == "int8"

    def refusal(self, a, b, result, products: tuple[Shape, ...]) -> str:
        """Return why the core cannot compute products of operands of these types; or "".

        Parameters
        ----------
        a, b, result : numpy.dtype
        products : tuple of (int, int, int, int)
            count, m, k and n of each product of an operator.
        """
        types = [np.dtype(kind) for kind in (a, b, result)]
        exact = self.quantizes and types == [_INT8, _INT8, _INT32]
        if not exact and any(kind not in FLOATS for kind in types):
            wanted = "float32, float16 and bfloat16"
            if self.quantizes:
                wanted += ", and of int8 with a sum of int32"
            names = " x ".join(map(str, types[:2]))
            return f"{names} -> {types[2]}: the core computes products of {wanted}"
        if not products or any(0 in product for product in products):
            return "the product is empty"
        if self.quantizes:
            try:
                check_depth(max(k for _, _, k, _ in products), True)
            except ValueError as error:
                return str(error)
        return ""

    def static_rows(self) -> StaticWeights:
        """Return a cache for an A of constant weights [count, M, K]."""
        return StaticWeights(lambda array: quantized(array, (-1,)))

    def static_columns(self) -> StaticWeights:
        """Return a cache for a B of constant weights [count, K, N]: floats, or int8."""
        return StaticWeights(lambda array: _quantized_weights(array, (-2,)))

    def static_kernel(self) -> StaticWeights:
        """Return a cache for a constant kernel [positions..., C / groups, O]: floats, or int8."""
        return StaticWeights(_quantized_kernel)

    def matmul(self, operator: Operator, a: Operand, b: Operand) -> np.ndarray:
        """Return the products [count, M, N] of A [count, M, K] and B [count, K, N].

        The result is float32, or int32 if both operands are arrays of int8. On an int8 core an
        operand may be a `Quantized`, as the caches of this class make it.

        Raises OffloadError if the core or the connection failed, or a float operand on an int8 core
        is not finite.
        """
        def compute():
            x, w = self._operand(a, (-1,)), self._operand(b, (-2,))
            left, right = _bits(x), _bits(w).swapaxes(-1, -2)
            count, m, k = left.shape
            shape = count, m, k, right.shape[1]
            step = max(1, _PART // (count * k * left.itemsize))
            parts = [slice(start, start + step) for start in range(0, m, step)]
            sums, sent = self._run([
                ((count, len(left[0, part]), *shape[2:]), _copy(left[:, part]), right)
                for part in parts
            ], b)
            return _times(_joined(sums), _scale(x), _scale(w)), sent

        return self._recorded(operator, compute)

    def convolution(
        self, operator: Operator, x: Operand, w: Operand, window: Window
    ) -> np.ndarray:
        """Return the convolution [N, positions..., O] of x [N, positions..., C] with a kernel.

        The kernel is [positions..., C / groups, O]. `weft.offload.windows` has the formula, and the
        order of the sums. Types and errors are as in `matmul`.
        """
        def compute():
            map_, kernel = self._map(x, window.groups), self._kernel(w)
            bits, weights = _bits(map_), _bits(kernel)
            phases = window.phases(bits.shape, weights.shape)
            size, sent = window.size(bits.shape, weights.shape), []
            results = len(bits) // window.batch_groups, *size, weights.shape[-1]
            y = None
            for phase in phases:
                part, of_phase = self._phase(phase, bits, weights, w)
                sent += of_phase
                if phase.size == size:  # the only one
                    y = part
                    break
                if y is None:
                    y = np.zeros(results, part.dtype)
                y[(slice(None), *phase.results)] = part
            if y is None:
                y = np.zeros(results, self.accelerator.config.data_type.acc.name)
            x_scale, w_scale = _scale(map_), _scale(kernel)
            x_scale = None if x_scale is None else _scale_of_images(x_scale, window, y.shape)
            return _times(y, x_scale, None if w_scale is None else w_scale.reshape(-1)), sent

        return self._recorded(operator, compute)

    def _phase(self, phase, bits, weights, given):
        """Return the results [N, positions..., O] of a phase, and what was sent."""
        columns, positions = phase.columns(weights), math.prod(phase.size)
        count, _, k, n = phase.shape
        groups, images = phase.batch_groups, len(bits) // phase.batch_groups
        step = max(1, _PART // (count * positions * k * bits.itemsize))
        works = []
        for start in range(0, images, step):
            some = bits
            if step < images:
                some = bits.reshape(groups, images, *bits.shape[1:])[:, start : start + step]
                some = some.reshape(-1, *bits.shape[1:])
            shape = count, len(some) // groups * positions, k, n
            works.append((shape, functools.partial(self._write_patches, phase, some), columns))
        sums, sent = self._run(works, given, tuple((q.start, q.step) for q in phase.kernel))
        return phase.unfolded(_joined(sums)), sent

    def _write_patches(self, phase, images, rows):
        """Write A; the lock of the accelerator is held."""
        patches = self._keep(
            (phase, images.shape, images.dtype),
            lambda: phase.patches(images.shape, images.dtype),
        )
        patches.write(images)
        rows.reshape(patches.rows.shape)[...] = patches.rows

    def _operand(self, array, axes):
        """Return an operand in the type of the core: bfloat16, int8 or Quantized."""
        if self.quantizes:
            is_int8 = isinstance(array, Quantized) or array.dtype == _INT8
            return array if is_int8 else quantized(array, axes)
        if isinstance(array, Quantized):
            raise TypeError("an operand of a bf16 core must be an array of floats, not Quantized")
        if array.dtype == np.float16:
            array = array.astype(np.float32)
        return PRODUCTS["bf16"].to_core_type("operands", array, cast=True)[0]

    def _map(self, x, groups):
        if not isinstance(x, np.ndarray) or not self.quantizes or x.dtype == _INT8:
            return self._operand(x, ())
        parts = x.reshape(*x.shape[:-1], groups, -1)
        found = quantized(parts, (*range(1, x.ndim - 1), x.ndim))
        return Quantized(found.values.reshape(x.shape), found.scale[..., 0])

    def _kernel(self, w):
        if isinstance(w, np.ndarray) and self.quantizes:
            return _quantized_kernel(w)
        return self._operand(w, ())

    def _recorded(self, operator, compute):
        """Run ``compute()``, which returns a result and what was sent; record the call."""
        start = time.perf_counter()
        try:
            result, sent = compute()
        except Exception as error:
            raise OffloadError(f"{operator.title} failed on Weft: {error}") from error
        self.record.ran(operator, sent, time.perf_counter() - start)
        return result

    def _run(
        self, works: Iterable[tuple[Shape, Callable, np.ndarray]], b: Operand,
        place: tuple = (),
    ) -> tuple[list[np.ndarray], list[Sent]]:
        """Return the sums [count, m, n] of products, and what was sent.

        Each has a shape, what writes A, and the bits of B^T. They are those of ``b``, or of the
        part of it at ``place``.
        """
        accelerator, results, sent = self.accelerator, [], []
        for shape, write_rows, columns in works:
            with accelerator.lock:
                pages = None
                if isinstance(b, Quantized):
                    pages, loaded = self._stay(b, place, shape, columns)
                    sent += loaded
                # Operands that the user has loaded may have other pages than before.
                a_free, b_free = accelerator.free_pages()
                sent.append(Sent(shape, (a_free, b_free), pages))
                stream = self._keep(sent[-1], lambda key=sent[-1]: product_stream(
                    accelerator.config, key.shape, key.free, key.b_pages
                ))

                def write(stream=stream, write_rows=write_rows, columns=columns):
                    write_rows(stream.rows)
                    if stream.columns is not None:
                        stream.columns[...] = columns

                found, _ = accelerator.execute(stream, write, macs=math.prod(shape))
                results.append(stream.read(found))
        return results, sent

    def _stay(self, b, place, shape, columns):
        """Return the pages of a B that stays, or None if there is no room; and what was sent."""
        if self._contents != self.accelerator.contents:  # a call of anybody has failed
            self._freed.extend(
                found for parts in self._weights.values() for found in parts.values()
            )
            self._weights.clear()
            self._contents = self.accelerator.contents
        while self._freed:
            for resident in self._freed.popleft():
                resident.free()
        parts = self._weights.get(b)
        if parts is None:
            parts = self._weights[b] = {}
            weakref.finalize(b, _free, self._freed, parts).atexit = False
        residents, sent = parts.get(place), []
        if residents is None:
            config = self.accelerator.config
            pages, (_, free) = weight_pages(config, shape), self.accelerator.free_pages()[1]
            if pages is None or 2 * (free - pages) < memories(config)[Region.B].pages:
                return None, []
            with contextlib.ExitStack() as undo:  # an interrupted load leaves nothing
                residents = [
                    undo.enter_context(self.accelerator.load(lines.view(np.int8).T))
                    for lines in columns
                ]
                undo.pop_all()
            parts[place] = residents
            count, _, k, n = shape
            sent.append(Sent((count, 0, k, n)))
        return tuple(resident.page for resident in residents), sent

    def _keep(self, key, make):
        """Return what was made for a key; the latest are kept."""
        kept = self._kept
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
            self._bytes += found.nbytes
            while self._bytes > _KEPT and len(kept) > 1:
                self._bytes -= kept.popitem(last=False)[1].nbytes
        kept.move_to_end(key)
        return found


def _free(freed, parts):
    """Let the next product free the pages: a finalizer may run at any time, in any thread."""
    freed.extend(parts.values())


def _bits(operand):
    """The bits of an operand as unsigned integers."""
    values = operand.values if isinstance(operand, Quantized) else operand
    return values.view(f"u{values.itemsize}")


def _copy(values):
    """What writes ``values`` to the rows of a stream."""
    def write(rows):
        rows[...] = values

    return write


def _joined(parts):
    """The sums of parts of the rows as one array."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, 1)


def _scale(operand):
    """The scale of an operand; None if it has none."""
    return operand.scale if isinstance(operand, Quantized) else None


def _times(sums, a_scale, b_scale):
    """``float32(sum) * (a_scale * b_scale)``; the sums, if no operand has a scale."""
    if a_scale is None and b_scale is None:
        return sums
    a_scale, b_scale = (np.float32(1) if x is None else x for x in (a_scale, b_scale))
    return sums.astype(_FLOAT32) * (a_scale * b_scale)


def _quantized_weights(array, axes):
    """Constant weights; those of int8 are what they are."""
    return Quantized(array, None) if array.dtype == _INT8 else quantized(array, axes)


def _quantized_kernel(w):
    """A kernel [positions..., C / groups, O] with a scale for each channel of the results."""
    return _quantized_weights(w, tuple(range(w.ndim - 1)))


def _scale_of_images(scale, window, shape):
    """The scales of images [N, 1..., groups or 1] for results [N, positions..., O]."""
    if window.groups == scale.shape[-1] != 1:
        return np.repeat(scale, shape[-1] // window.groups, -1)
    groups = window.batch_groups
    if groups == 1:
        return scale
    of_groups = scale.reshape(groups, -1).T
    ones = (1,) * (len(shape) - 2)
    return np.repeat(of_groups, shape[-1] // groups, 1).reshape(shape[0], *ones, shape[-1])
