"""The driver: matrix products of numpy arrays on a core behind any transport."""

import contextlib
import threading
from dataclasses import replace

import numpy as np

from weft.commands import Load, Region, Status
from weft.config import PAGE_WORDS, Config
from weft.geometry import memories
from weft.host.core_session import AcceleratorError, CoreSession
from weft.host.packing import Packers, pack, unpack
from weft.host.plan import Pages, ResidencyCache
from weft.host.planner import Planner
from weft.host.prepared import PreparedProduct, product_commands
from weft.host.product import Resident
from weft.host.product_stream import MAX_JOBS, ProductStream, Setup
from weft.host.products import PRODUCTS
from weft.host.stats import Stats
from weft.host.transport import Commands, Transport

__all__ = ["Accelerator", "AcceleratorError"]

_MAX_PLANS = 64  # kept, each of few steps: a long plan costs little beside its product
_MAX_STEPS = 256


class Accelerator:
    """Computes matrix products on one core: ``c = Accelerator("golden").matmul(a, b)``.

    It uses the core exclusively until it is closed. It is also a context manager that closes the
    transport at its end.

    Threads may share an accelerator: calls of its methods and of `Resident.free` wait for each
    other, so each product is complete before the next one starts. Do not share a transport between
    accelerators.

    Parameters
    ----------
    transport : Transport or str
        Connection to the core, or its name: a serial port (``/dev/ttyUSB1``, ``COM3``),
        ``tcp://host:port`` or ``golden``; see `weft.host.opening.open_transport`.
    config : Config, optional
        Expected Config of the core; by default the Config in the core's registers is accepted.
    timeout : float
        Maximum seconds without progress in each wait for the core.

    Attributes
    ----------
    config : Config
        Config of the core.
    lock : threading.RLock
        Held during each call.
    contents : int
        Counts how often the contents of the core's buffers became unknown, as after a failure.

    Raises
    ------
    AcceleratorError
        If the core's registers do not describe a Config, or not ``config``.
    TransportError
        If the connection fails, or the named transport cannot be opened.
    ValueError
        If ``transport`` is not a valid name.
    """

    def __init__(self, transport: Transport | str, config: Config | None = None, *, timeout=60.0):
        self._core = CoreSession.open(transport, config, timeout)
        self.config = self._core.config
        self._memories = memories(self.config)
        self._pages = [Pages(self._memories[side].pages) for side in (Region.A, Region.B)]
        self._cache = ResidencyCache(self._memories)
        self._packers = Packers(self._memories)
        # The class of a product with its checked arguments, which depends on the data type.
        self._product_type = PRODUCTS[self.config.dtype]
        self._plans: dict[tuple, list] = {}  # steps of products by all that they depend on
        self.lock = threading.RLock()

    def __enter__(self) -> "Accelerator":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Close the transport after the current product has ended."""
        with self.lock:
            self._core.close()

    @property
    def contents(self) -> int:
        with self.lock:
            return self._core.contents

    def counters(self) -> dict[str, int]:
        """Return the current values of the core's 32-bit counters, by name.

        The names are those in `weft.registers.COUNTERS`.
        """
        with self.lock:
            return self._core.counters()

    def load(self, matrix, side: str = "b", *, cast: bool = False) -> Resident:
        """Load a matrix into the core's buffer, where it stays until it is freed.

        Parameters
        ----------
        matrix : array [K, N], or [M, K] for side "a"
            Type int8 or uint8 (bf16 core: bfloat16).
        side : "a" or "b"
            Operand of `matmul` for which the matrix is loaded.
        cast : bool
            bf16 core only: ``matrix`` may also be float32; it is rounded to nearest even.

        Returns
        -------
        Resident
            The operand for `matmul`; a context manager that frees it.

        Raises
        ------
        TypeError, ValueError
            If ``matrix`` is not a matrix of these types.
        ValueError
            If the matrix does not fit into consecutive free pages of the buffer.
        AcceleratorError, TransportError
            If the core or the connection failed.
        """
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        given = self._given(cast=cast or None)
        values, dtype = self._product_type.to_core_type(side, matrix, **given)
        if values.ndim != 2 or 0 in values.shape:
            rule = "a matrix of 1 x 1 or more"
            raise ValueError(f"{side} must be {rule} to be loaded, not of shape {values.shape}")
        lines = values if side == "a" else values.T
        index = Region[side.upper()]
        operand, pages = self._memories[index], self._pages[index]
        with self.lock:
            load = self._allocate(index, lines)
            if load is None:
                size = f"{values.shape[0]} x {values.shape[1]}"
                space = f"{pages.free()[1]} consecutive free pages of {PAGE_WORDS} words"
                need = operand.panels(lines.shape[0]) * operand.panel_pages(lines.shape[1])
                raise ValueError(f"{side} of {size} must fit in the {space}, not need {need}")
            try:
                self._send_load(load, pack(lines, operand))
            except BaseException:
                pages.release(load.page)
                raise
        sums = self._product_type.sums(lines)
        return Resident(side, values.shape, dtype, sums, load.page, self, pages.release, self.lock)

    def matmul(
        self, a, b, *, a_zero_point=None, b_zero_point=None, bias=None,
        scale=None, multiplier=None, shift=None, zero_point=None, low=None, high=None,
        activation=None, c=None, cast: bool = False, out_dtype=None, record: bool = False,
    ):
        """Return ``a @ b`` with zero points, bias, scaling and activation.

        Shapes follow `numpy.matmul`: vectors, matrices, and batches that broadcast. A parameter of
        shape () or [N] applies to the whole batch; one of shape [batch..., N] broadcasts against
        the batch of the result.

        On an int8 core without a scale the result is int32 and exact::

            (a - a_zero_point) @ (b - b_zero_point) + bias

        With a scale the core converts each sum to 8 bits, bit for bit as the mode in
        ``Config.requantize`` defines::

            activation[clamp(round(sum * scale) + zero_point, low, high)]

        In this case a sum with its bias wraps at 32 bits, as in the accumulators of
        inference runtimes.

        On a bf16 core the result is::

            clamp(sum, low, high)

        Each sum is a chain of fused multiply-adds in float32, in ascending order of k, that starts
        from ``c``, ``bias`` or +0. ``low=0`` is a ReLU.

        Parameters
        ----------
        a, b : array or Resident
            Type int8 or uint8; on a bf16 core: bfloat16. Shapes [batch..., M, K] and
            [batch..., K, N].
        a_zero_point : int or array [batch..., M], optional
            One per row of ``a``, in the range of its type. With a scale: [batch..., 1], one per
            product.
        b_zero_point : int or array [batch..., N], optional
            One per column of ``b``, in the range of its type. With a scale, a value other than 0
            (int8) or 128 (uint8) needs ``Config.b_zero_point``.
        bias : int or array [batch..., N], optional
            In the range of int32. On a bf16 core: float32.
        scale : float or array [batch..., N], optional
            Above 0. In modes ``tflite`` and ``single`` it is converted to multiplier and shift by
            `weft.quantize.quantize_multiplier`; in mode ``onnx`` to float32.
        multiplier, shift : int or array [batch..., N], optional
            Instead of a scale, in modes ``tflite`` and ``single``: the scale is
            ``multiplier * 2**(shift - 31)``, the multiplier 0 or in 2**30..2**31-1, the shift in
            -31..31.
        zero_point : int or array [batch..., N], optional
            Zero point of scaled results, in the range of ``out_dtype``; default 0.
        low, high : int or array [batch..., N], optional
            Limits of scaled results, in the range of ``out_dtype``; default that range. A fused
            ReLU is ``low=zero_point``. On a bf16 core: float32, not NaN; default no limit.
        activation : array [batch..., 256] of int8 or uint8, optional
            Table of results, indexed by the byte of the clamped value, as from
            `weft.quantize.activation_table`; its type is ``out_dtype``.
        c : array of float32, optional
            bf16 core only: start values of the sums; must broadcast to the result's shape.
        cast : bool
            bf16 core only: ``a`` and ``b`` may also be float32; they are rounded to nearest even.
        out_dtype : dtype, optional
            Type of scaled results: int8 or uint8; default the type of ``activation``, else int8.
            On a bf16 core: float32 (default) or bfloat16.
        record : bool
            Return ``(array, Stats)`` instead of the array.

        Returns
        -------
        array, or (array, `weft.host.stats.Stats`)

        Raises
        ------
        TypeError, ValueError
            Before anything is sent: if an argument has a wrong type, shape or value, needs a
            feature that the Config does not have, is not for a core of this dtype, or if K is so
            large that a sum could exceed int32. After the product: if an int32 sum with its bias
            exceeds int32.
        AcceleratorError, TransportError
            If the core or the connection failed. The result is lost; the next call works again
            unless the connection is closed.
        """
        given = self._given(
            a_zero_point=a_zero_point, b_zero_point=b_zero_point, bias=bias, scale=scale,
            multiplier=multiplier, shift=shift, zero_point=zero_point, low=low, high=high,
            activation=activation, c=c, cast=cast or None, out_dtype=out_dtype,
        )
        with self.lock:  # also during the checks: another thread may free a resident operand
            product = self._product_type(a, b, self, **given)
            if product.k:
                raw = np.zeros(product.raw_shape, product.dtype)
                stats = self._run(product, raw, record) if raw.size else None
            else:
                raw, stats = product.empty_result(), None
        result = product.result(raw)
        if not record:
            return result
        return result, stats or Stats(0, 0, self.config.peak, 0, 0, 0, 0, 0, 0)

    def prepare(self, a_shape: tuple[int, ...], b, *, a_dtype=None, **arguments) -> PreparedProduct:
        """Prepare ``matmul(a, b, ...)`` for many ``a`` of one shape; much faster for small ``a``.

        Parameters
        ----------
        a_shape : tuple of int
            Shape of ``a``.
        b : array or Resident
            A resident B is not sent again.
        a_dtype : dtype, optional
            Type of ``a``; default int8, or bfloat16 on a bf16 core.
        **arguments
            All others of `matmul`, except ``record``.

        Returns
        -------
        PreparedProduct

        Raises
        ------
        TypeError, ValueError
            As in `matmul`; and if the product is empty or needs several activation tables.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        with self.lock:
            a = np.zeros(a_shape, a_dtype or self.config.data_type.a.name)
            product = self._product_type(a, b, self, **self._given(**given))
            product.check_prepared()
            return PreparedProduct(self, product, self.free_pages)

    def execute(
        self, stream: ProductStream, write, *, macs: int, setup: Setup | None = None,
        record: bool = False,
    ):
        """Run a stream of products; return what `ProductStream.read` takes, and Stats or None.

        ``write()`` writes the operands to the stream. The loads of ``setup`` precede the stream;
        they are sent only if the core does not have them. ``macs`` is for the Stats.

        Raises AcceleratorError or TransportError as `matmul` does.
        """
        core = self._core
        with self.lock:
            write()
            # The pages of parameters that the stream overwrites are not known one by one.
            self._cache.clear()
            with core.transaction(self._cache):
                if setup is not None and setup.epoch != core.epoch:
                    self._finish_loads(setup.loads)
                    setup.epoch = core.epoch
                before = core.counters() if record else None
                results = []
                for commands, jobs in stream.fill(core.tags):
                    core.send(commands)
                    results += [core.receive(tag, size) for tag, size in jobs]
                words = stream.bytes_in // self.config.bytes_in
                if record and stream.ends_with_loads and not core.wait_for_words(before, words):
                    self._finish_loads([])
                stats = core.stats_since(before, macs=macs, jobs=stream.jobs) if record else None
            return results, stats

    def free_pages(self) -> list[tuple[int, int]]:
        """Return the longest free range of the buffers of A and of B: first page, pages."""
        with self.lock:
            return [pages.free() for pages in self._pages]

    def _given(self, **arguments):
        """Return the arguments other than None; TypeError if one does not fit the core's dtype."""
        given = {name: value for name, value in arguments.items() if value is not None}
        unsupported = [name for name in given if name not in self._product_type.ARGUMENTS]
        if unsupported:
            rule = f"absent where Config.dtype is {self.config.dtype}"
            raise TypeError(f"{', '.join(unsupported)} must be {rule}, not given")
        return given

    def _allocate(self, region, lines):
        """Allocate pages for all ``lines`` [R, K]; return the load, or None if they do not fit."""
        operand = self._memories[region]
        panels, pitch = operand.panels(lines.shape[0]), operand.panel_pages(lines.shape[1])
        page = self._pages[region].allocate(panels * pitch)
        if page is None:
            return None
        return Load(region, page, pitch, panels, operand.panel_words(lines.shape[1]))

    def _send_load(self, load, data):
        """Send a load and wait until the core has accepted all of it."""
        with self._core.transaction(self._cache):
            self._finish_loads([(load, data)])

    def _finish_loads(self, loads):
        """Send loads and wait until the core has accepted all of them, and all before them."""
        barrier = self._core.barrier()  # an empty job, answered in order
        self._core.send(Commands(self.config, [*loads, (barrier, b"")]))
        self._core.collect(barrier, Status.REJECTED)

    def _run(self, product, raw, record):
        """Compute the products into ``raw`` [batch, M, N]; return the Stats if ``record``."""
        core = self._core
        with contextlib.ExitStack() as undo:
            first = self._load_shared(product, undo)
            steps = self._plan(product)
            undo.enter_context(core.transaction(self._cache))
            before = core.counters() if record else None
            for start in range(0, len(steps), MAX_JOBS):
                chunk = steps[start : start + MAX_JOBS]
                commands = product_commands(
                    product, chunk, self.config, self._cache, self._packers
                )
                core.send(Commands(self.config, [*first, *commands]))
                first = []
                for index, step in chunk:
                    if step.has_results:
                        job = step.job
                        tile = unpack(core.collect(job), job.m, job.n, self.config, raw.dtype)
                        raw[index, step.rows, step.cols] = tile
            if record:
                return core.stats_since(before, macs=product.macs, jobs=len(steps))

    def _load_shared(self, product, undo):
        """Return the commands that load an operand that the whole batch shares, if it fits.

        The pages are freed by ``undo``, an ExitStack.
        """
        commands = []
        for region in (Region.A, Region.B):
            lines = product.lines(region, 0) if product.shares(region) else None
            load = None if lines is None else self._allocate(region, lines)
            if load is not None:
                undo.callback(self._pages[region].release, load.page)
                product.pages[region] = load.page
                commands.append((load, pack(lines, self._memories[region])))
        return commands

    def _plan(self, product):
        """Return ``(index, step)`` of all products of the batch."""
        free = self.free_pages()
        key = product.raw_shape, product.k, *product.pages, product.flags, *free
        steps = self._plans.pop(key, None)
        if steps is None:
            planner = Planner(self.config, free)
            _, m, n = product.raw_shape
            a_page, b_page = product.pages
            steps = [
                (index, step)
                for index in range(product.raw_shape[0])
                for step in planner.plan(
                    m, n, product.k, a_page=a_page, b_page=b_page, flags=product.flags
                )
            ]
        if len(steps) <= _MAX_STEPS:
            self._plans[key] = steps  # the latest plan is the last one
            if len(self._plans) > _MAX_PLANS:
                del self._plans[next(iter(self._plans))]
        tags = self._core.tags
        return [
            (index, replace(step, job=step.job.tagged(next(tags)))) for index, step in steps
        ]
