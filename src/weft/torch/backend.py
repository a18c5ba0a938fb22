"""The backend ``weft`` of `torch.compile`: its options, and the report of what ran where."""

import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._guards import TracingContext
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel

from weft.config import Config
from weft.hints import did_you_mean
from weft.host.accelerator import Accelerator
from weft.host.emulated import GoldenTransport
from weft.offload import OffloadReport, Operator, Products, Record
from weft.offload.report import offload_report
from weft.torch.graphs import on_accelerator

__all__ = ["backend", "record", "report"]

FRAMEWORK = "PyTorch"
_BREAK = "graph break"
_OPTIONS = ("accelerator", "dtype")
_lock = threading.RLock()
_records: "weakref.WeakKeyDictionary[Accelerator, Record]" = weakref.WeakKeyDictionary()
# By the id of the accelerator, which the products keep alive: all graphs share command streams.
_products: "weakref.WeakValueDictionary[int, Products]" = weakref.WeakValueDictionary()
_default: list[Accelerator] = []


def backend(graph: GraphModule, inputs: list, *, options: dict | None = None) -> Callable:
    """Compile a graph of `torch.compile` so that its products run on an accelerator::

        fast = torch.compile(model, backend="weft", options={"accelerator": acc})

    Matrix products and convolutions run on the core, forward and backward; everything else runs in
    PyTorch, operator by operator. `weft.offload.products` has the arithmetic, and
    `weft.torch.products` the operators. A product that the core cannot compute runs in PyTorch,
    and the `report` says why.

    On an int8 core, float operands are quantized in each call; parameters and buffers are
    quantized again only after a change, and stay in the core's buffer, if there is room. A graph
    that is quantized with PT2E keeps its scales: see `weft.torch.quantized`.

    Parameters
    ----------
    graph, inputs
        From `torch.compile`.
    options : dict, optional
        ``accelerator``: an Accelerator behind any transport: golden, simulated, a serial port,
        TCP; by default the golden model of a bf16 core with 8 x 8 PEs. ``dtype``: ``bf16``, or
        ``int8`` on an int8 core; by default ``bf16``.

    Raises
    ------
    TypeError
        If ``accelerator`` is not an Accelerator.
    ValueError
        If there is another option, or ``dtype`` is not the type of the core.

    `torch.compile` raises them inside an error of its own. When the function runs,
    `weft.offload.OffloadError` names the operator that failed.
    """
    products = _products_of(**_checked(options or {}))
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        products.record.found([_ended(reason)])
    static: set[str] = set()  # names of the values that depend on parameters alone

    def forward(graph, inputs):
        found = TracingContext.try_get()
        known = getattr(found, "fw_metadata", None)
        weights = set(getattr(known, "static_input_indices", None) or ())
        static.update(
            node.name for number, node in enumerate(graph.graph.find_nodes(op="placeholder"))
            if number in weights
        )
        static.update(on_accelerator(graph, products, frozenset(static)))
        return make_boxed_func(graph.forward)

    def backward(graph, inputs):
        on_accelerator(graph, products, frozenset(static), backward=True)
        return make_boxed_func(graph.forward)

    compiler = aot_autograd(fw_compiler=forward, bw_compiler=backward)
    # The other kernels of attention have their products inside.
    with sdpa_kernel(SDPBackend.MATH):
        return compiler(graph, inputs)


def record(accelerator: Accelerator | None = None) -> Record:
    """Return the record of the products of PyTorch on an accelerator.

    ``record(acc).clear()`` sets its numbers of calls to 0. Without an argument the accelerator is
    the one that the backend takes by default.
    """
    accelerator = _accelerator(accelerator)
    with _lock:
        return _records.setdefault(accelerator, Record())


def report(accelerator: Accelerator | None = None, target=None) -> OffloadReport:
    """Return what ran where and why, since ``record(accelerator).clear()``.

    A ``target`` is a board, or another argument of `weft.models.target.target_of`: the report
    then has its times. Raises ModelError if it is not known, or its core does not fit.

    An operator is in the report after the first run of its graph. Code that `torch.compile` leaves
    to Python has no graph. The report has all these graph breaks of the process, of any backend;
    ``fullgraph=True`` of `torch.compile` makes them an error.
    """
    accelerator = _accelerator(accelerator)
    config = accelerator.config
    found = offload_report(record(accelerator), config, FRAMEWORK, target)
    known = {row.operator.reason for row in found.rows}
    breaks = offload_report(_breaks(known), config, FRAMEWORK, target)
    return replace(found, rows=(*found.rows, *breaks.rows))


def _checked(options):
    """The options as arguments of `_products_of`; ValueError if one is not known."""
    for name in options:
        if name not in _OPTIONS:
            raise ValueError(
                f"options of the backend weft must be {' and '.join(_OPTIONS)}, not"
                f" {name!r}{did_you_mean(str(name), _OPTIONS)}"
            )
    return options


def _products_of(accelerator=None, dtype="bf16"):
    """The products of an accelerator, which all graphs share."""
    if accelerator is None and dtype == "int8":
        raise ValueError("accelerator must be given in options where dtype is int8")
    with _lock:
        accelerator = _accelerator(accelerator)
        # This checks the arguments, too.
        made = Products(accelerator, dtype)
        made.record = record(accelerator)
        return _products.setdefault(id(accelerator), made)


def _accelerator(given):
    """The accelerator, or the default one."""
    if given is not None:
        if not isinstance(given, Accelerator):
            raise TypeError(f"accelerator must be a weft.Accelerator, not {given!r}")
        return given
    with _lock:
        if not _default:
            _default.append(Accelerator(GoldenTransport(Config(dtype="bf16", rows=8, cols=8))))
        return _default[0]


def _ended(reason):
    """The operator of the place where a graph ends before code that is left to Python."""
    where = ""
    if reason.user_stack:
        frame = reason.user_stack[-1]
        where = f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}"
    return Operator(_BREAK, where, reason=_left(str(reason.reason)))


def _breaks(known):
    """A record of the graph breaks of the process whose reasons are not ``known``."""
    found = Record()
    # One counter has those that leave a graph, and the other one those that leave none.
    for text, times in (counters["graph_break"] | counters["unimplemented"]).items():
        reason = _left(text)
        if reason not in known:
            thing = re.search(r"debug context: (.+)", text)
            operator = Operator(_BREAK, thing[1].strip() if thing else "", reason=reason)
            found.found([operator] * times)
    return found


def _left(text):
    """Why code is left to Python, in one line."""
    reason = text.strip().splitlines()[0].strip()
    return f"code is left to Python, and its products are not seen: {reason}"
