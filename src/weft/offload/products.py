"""Batched matrix products and convolutions of numpy arrays on an accelerator, for frameworks."""

import functools
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag
from weft.config import Config
from weft.host.accelerator import Accelerator
from weft.host.product_stream import Packed, ProductStream
from weft.host.products import PRODUCTS, check_depth
from weft.offload.quantization import Quantized, StaticWeights, quantized
from weft.offload.record import Operator, Record, Shape
from weft.offload.windows import Patches, Window

__all__ = ["OffloadError", "Products", "product_stream"]

FLOATS = (np.dtype(np.float32), np.dtype(bfloat16), np.dtype(np.float16))
_INT8, _INT32, _FLOAT32 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32)
_PART = 1 << 25  # bytes of A that are sent at once: larger products are cut into parts
_KEPT = 1 << 28  # bytes of the command streams and maps that are kept

Operand = np.ndarray | Quantized


class OffloadError(RuntimeError):
    """An operator failed on the accelerator; the message names it."""


def product_stream(config: Config, shape: Shape, free=None) -> ProductStream:
    """The command stream of products of a shape whose operands both change from run to run."""
    acc = config.data_type.acc.name
    return ProductStream(
        config, shape, JobFlag(0), Packed(), acc, computed_b=True, free=free
    )


class Products:
    """Computes the products of a framework on an accelerator, and records them.

    On a bf16 core an operand of float32, float16 or bfloat16 is rounded to bfloat16, to nearest
    even. Each result is a chain of fused multiply-adds in float32, in ascending order of k, from
    +0; see `weft.golden.bf16.matmul_bf16`.

    On an int8 core an operand of these types becomes int8 (`weft.offload.quantization.quantized`):
    A with a scale for each row, B with one for each column, and the map of a convolution with one
    for each image. The result is::

        float32(sum) * (scale of A * scale of B)

    in float32, with the exact sum of int8 products. Products of int8 operands are exact in int32.

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
        """Return a cache for a B of constant weights [count, K, N]."""
        return StaticWeights(lambda array: quantized(array, (-2,)))

    def static_kernel(self) -> StaticWeights:
        """Return a cache for a constant kernel [positions..., C / groups, O]."""
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
            sums = self._run([
                ((count, len(left[0, part]), *shape[2:]), _copy(left[:, part]), right)
                for part in parts
            ])
            streams = [(count, y.shape[1], *shape[2:]) for y in sums]
            return _scaled(_joined(sums), x, w), streams

        return self._recorded(operator, compute)

    def convolution(
        self, operator: Operator, x: Operand, w: Operand, window: Window
    ) -> np.ndarray:
        """Return the convolution [N, positions..., O] of x [N, positions..., C] with a kernel.

        The kernel is [positions..., C / groups, O]. `weft.offload.windows` has the formula, and the
        order of the sums. Types and errors are as in `matmul`.
        """
        def compute():
            image = tuple(range(1, x.ndim)) if isinstance(x, np.ndarray) else ()
            map_, kernel = self._operand(x, image), self._kernel(w)
            bits, weights = _bits(map_), _bits(kernel)
            phases = window.phases(bits.shape, weights.shape)
            size, streams = window.size(bits.shape, weights.shape), []
            results = len(bits) // window.batch_groups, *size, weights.shape[-1]
            y = None
            for phase in phases:
                part, shapes = self._phase(phase, bits, weights)
                streams += shapes
                if phase.size == size:  # the only one
                    y = part
                    break
                if y is None:
                    y = np.zeros(results, part.dtype)
                y[(slice(None), *phase.results)] = part
            if y is None:
                y = np.zeros(results, self.accelerator.config.data_type.acc.name)
            if isinstance(map_, Quantized):
                scale = _scale_of_images(map_.scale, window, y.shape)
                return _times(y, scale, kernel.scale.reshape(-1)), streams
            return y, streams

        return self._recorded(operator, compute)

    def _phase(self, phase, bits, weights):
        """Return the results [N, positions..., O] of a phase, and the products that were sent."""
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
        y = phase.unfolded(_joined(self._run(works)))
        return y, [shape for shape, *_ in works]

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

    def _kernel(self, w):
        if isinstance(w, np.ndarray) and self.quantizes and w.dtype != _INT8:
            return _quantized_kernel(w)
        return self._operand(w, ())

    def _recorded(self, operator, compute):
        """Run ``compute()``, which returns a result and its streams; record the call."""
        start = time.perf_counter()
        try:
            result, streams = compute()
        except Exception as error:
            raise OffloadError(f"{operator.title} failed on Weft: {error}") from error
        self.record.ran(operator, streams, time.perf_counter() - start)
        return result

    def _run(self, works: Iterable[tuple[Shape, Callable, np.ndarray]]) -> list[np.ndarray]:
        """Return the sums [count, m, n] of products: shape, what writes A, and the bits of B^T."""
        accelerator, results = self.accelerator, []
        for shape, write_rows, columns in works:
            with accelerator.lock:
                stream = self._stream(shape)

                def write(stream=stream, write_rows=write_rows, columns=columns):
                    write_rows(stream.rows)
                    stream.columns[...] = columns

                found, _ = accelerator.execute(stream, write, macs=math.prod(shape))
                results.append(stream.read(found))
        return results

    def _stream(self, shape):
        """Return the stream of a shape."""
        # Operands that the user has loaded may have other pages than before.
        free = self.accelerator.free_pages()
        return self._keep(
            (shape, *free), lambda: product_stream(self.accelerator.config, shape, free)
        )

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


def _scaled(sums, a, b):
    """The result of products whose operands may have a scale."""
    if not isinstance(a, Quantized) and not isinstance(b, Quantized):
        return sums
    return _times(sums, *(x.scale if isinstance(x, Quantized) else np.float32(1) for x in (a, b)))


def _times(sums, a_scale, b_scale):
    """``float32(sum) * (a_scale * b_scale)``."""
    return sums.astype(_FLOAT32) * (a_scale * b_scale)


def _quantized_kernel(w):
    """A kernel [positions..., C / groups, O] with a scale for each channel of the results."""
    return quantized(w, tuple(range(w.ndim - 1)))


def _scale_of_images(scale, window, shape):
    """The scales of images for results [N, positions..., O]."""
    groups = window.batch_groups
    if groups == 1:
        return scale
    of_groups = scale.reshape(groups, -1).T
    ones = (1,) * (len(shape) - 2)
    return np.repeat(of_groups, shape[-1] // groups, 1).reshape(shape[0], *ones, shape[-1])
