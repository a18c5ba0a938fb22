"""``offload``: a function of JAX whose products run on an accelerator, and the rest in XLA."""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

import jax
from jax.extend import source_info_util

from weft.host.accelerator import Accelerator
from weft.jax.primitives import TWINS, Site, products_of
from weft.offload import NO_PRODUCT, OffloadReport, Operator, Products, Record
from weft.offload.report import offload_report

__all__ = ["Offloaded", "offload"]

FRAMEWORK = "XLA"
# Functions that are evaluated in place: what they mean for XLA, such as a name, does not matter.
_INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CUSTOM_VJP = {"custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr"}
# Operators of JAX with products inside.
_FUSED = re.compile(
    r"ragged_dot|scaled_(dot|matmul)|dot_product_attention|symmetric_product|cholesky|householder|"
    r"^(lu|qr|geqrf|geqp3|ormqr|eigh?|svd|schur|hessenberg|tridiagonal|triangular_solve)$"
)
_INSIDE = "XLA computes the products inside it"
# The frames of these files are not where a user's operator is.
for file in ("offloading", "primitives"):
    source_info_util.register_exclusion(str(PurePath(__file__).with_name(f"{file}.py")))


class Offloaded:
    """A function whose products run on an accelerator; `offload` makes it.

    Call it as the function. `jax.jit`, `jax.grad`, `jax.vmap` and the other transformations of JAX
    take it. Threads may share it.

    Attributes
    ----------
    record : Record
        Which operators ran where, and how often.
    """

    def __init__(self, function: Callable, products: Products, weights: tuple[int, ...]):
        functools.update_wrapper(self, function)
        self._function = function
        self._products = products
        self._weights = weights
        self._compiled = jax.jit(self._evaluated)

    @property
    def record(self) -> Record:
        return self._products.record

    def __call__(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def report(self, target=None) -> OffloadReport:
        """Return what ran where and why, since ``record.clear()``, with cycles and bytes.

        A ``target`` is a board, or another argument of `weft.models.target.target_of`: the report
        then has its times. Raises ModelError if it is not known, or its core does not fit.

        JAX returns results before they are computed: `jax.block_until_ready` waits for them. Calls
        that still run are not in the report.
        """
        return offload_report(
            self.record, self._products.accelerator.config, FRAMEWORK, target
        )

    def _evaluated(self, *args, **kwargs):
        if self._weights and max(self._weights) >= len(args):
            raise ValueError(
                f"weights must be below {len(args)}, the number of arguments by position, not"
                f" {max(self._weights)}"
            )
        static = [
            number in self._weights
            for number, argument in enumerate(args) for _ in jax.tree.leaves(argument)
        ]
        flat, tree = jax.tree.flatten((args, kwargs))
        static += [False] * (len(flat) - len(static))
        shapes = []

        def function(*flat):
            args, kwargs = jax.tree.unflatten(tree, flat)
            leaves, out = jax.tree.flatten(self._function(*args, **kwargs))
            shapes.append(out)
            return leaves

        found = _Evaluation(self._products).results(function, flat, static, "")
        return jax.tree.unflatten(shapes[-1], found)


def offload(
    function: Callable, accelerator: Accelerator, dtype: str = "bf16",
    weights: int | Sequence[int] = (),
) -> Offloaded:
    """Return ``function`` with its products on an accelerator, and everything else in XLA.

    Every ``dot_general`` and every ``conv_general_dilated`` runs on the core: also inside ``jit``,
    ``scan``, ``while_loop``, ``cond``, ``checkpoint``, ``custom_jvp`` and ``custom_vjp``, and in
    the derivatives and batches of the result. `weft.offload.products` has the arithmetic. A product
    that the core cannot compute runs in XLA, and the report says why.

    Parameters
    ----------
    function : callable
        A function of arrays, or of trees of arrays, that JAX can trace.
    accelerator : Accelerator
        Behind any transport: golden, simulated, a serial port, TCP.
    dtype : str
        ``bf16``; or ``int8`` on an int8 core: float operands are then quantized in each call.
    weights : int or sequence of int
        int8 only: the numbers of the arguments that seldom change. Operands that depend on them and
        on constants alone are quantized again only after a change; as second operand or kernel
        they stay in the core's buffer, if there is room.

    Raises
    ------
    TypeError
        If ``function`` cannot be called, ``accelerator`` is not an Accelerator, or ``weights`` are
        not integers.
    ValueError
        If ``dtype`` is not the type of the core, or ``weights`` is given for another type than
        int8, or below 0. When the function is called: if an argument of ``weights`` is not given by
        its position.

    When the function runs, `weft.offload.OffloadError` inside the error of JAX names the operator
    that failed.
    """
    if not callable(function):
        raise TypeError(f"function must be callable, not {function!r}")
    products = Products(accelerator, dtype)
    numbers = (weights,) if isinstance(weights, int) else tuple(weights)
    if numbers and not products.quantizes:
        raise ValueError(f"weights must be absent where dtype is bf16, not {weights}")
    for number in numbers:
        if not isinstance(number, int):
            raise TypeError(f"weights must be numbers of arguments, not {number!r}")
        if number < 0:
            raise ValueError(f"weights must be 0 or more, not {number}")
    return Offloaded(function, products, numbers)


class _Evaluation:
    """Evaluates traced functions with their products on an accelerator."""

    def __init__(self, products, derived=False):
        self._products = products
        self._derived = derived  # from one operator, whose place is the place of all
        self._found = []  # Operators, of the results that are evaluated

    def results(self, function, arguments, static, name):
        """Return the flat results of a function; ``static`` says which arguments are weights."""
        closed = jax.make_jaxpr(function)(*arguments)
        self._found = []
        found, _ = self._run(closed.jaxpr, closed.consts, arguments, static, name)
        self._products.record.found(self._found)
        return found

    def _run(self, jaxpr, consts, arguments, static, name):
        """Return the results of a jaxpr, and whether each depends on weights alone."""
        values = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= dict(zip(jaxpr.invars, arguments, strict=True))
        # A constant of the function is an array of JAX; in a trace it may be a tracer.
        fixed = {var for var, value in zip(jaxpr.constvars, consts, strict=True)
                 if not isinstance(value, jax.core.Tracer)}
        fixed |= {var for var, flag in zip(jaxpr.invars, static, strict=True) if flag}

        def read(var):
            return var.val if hasattr(var, "val") else values[var]

        def is_fixed(var):
            return hasattr(var, "val") or var in fixed

        for eqn in jaxpr.eqns:
            inputs = [read(var) for var in eqn.invars]
            flags = [is_fixed(var) for var in eqn.invars]
            with jax.named_scope(str(eqn.source_info.name_stack) or "weft"):
                found, out_flags = self._equation(eqn, inputs, flags, name)
            values.update(zip(eqn.outvars, found, strict=True))
            fixed |= {
                var for var, flag in zip(eqn.outvars, out_flags, strict=True) if flag
            }
        return [read(var) for var in jaxpr.outvars], [is_fixed(var) for var in jaxpr.outvars]

    def _equation(self, eqn, inputs, flags, name):
        """Return the results of an equation, and whether each depends on weights alone."""
        kind, params = eqn.primitive.name, eqn.params
        if kind in TWINS:
            found = [self._product(eqn, inputs, flags, name)]
        elif kind in _INLINED:
            inner = params[_INLINED[kind]]
            below = _place(eqn, name)
            return self._run(inner.jaxpr, inner.consts, inputs, flags, below)
        elif kind == "custom_jvp_call":
            found = self._custom_jvp(eqn, inputs, flags, name)
        elif kind in _CUSTOM_VJP:
            found = self._custom_vjp(eqn, inputs, flags, name)
        elif kind in _REWRITTEN:
            changed = _REWRITTEN[kind](self, params, inputs, flags, _place(eqn, name))
            found = _bind(eqn, inputs, params | changed)
        else:
            self._kept(eqn, name)
            found = _bind(eqn, inputs, params)
        return found, [all(flags)] * len(found)

    def _product(self, eqn, inputs, flags, name):
        """Return the result of a product, on the core if it can."""
        kind, params = eqn.primitive.name, eqn.params
        a, b = (var.aval for var in eqn.invars)
        shapes = products_of(kind, a.shape, b.shape, params)
        refusal = self._products.refusal(a.dtype, b.dtype, eqn.outvars[0].aval.dtype, shapes)
        where = name if self._derived else _title(eqn, name)
        operator = Operator(kind, where, shapes, refusal)
        self._found.append(operator)
        if refusal:
            return eqn.primitive.bind(*inputs, **params)
        site = Site(
            self._products, operator, tuple(flags), _derive(self._products, derived=True)
        )
        return TWINS[kind].bind(*inputs, site=site, **params)

    def _kept(self, eqn, name):
        """Take note of an operator that XLA computes, and of the products inside it."""
        kind = eqn.primitive.name
        if eqn.primitive in TWINS.values():
            return  # on a core already: it is in the report of another `offload`
        if _FUSED.search(kind):
            self._found.append(Operator(kind, _title(eqn, name), reason=_INSIDE))
            return
        self._found.append(Operator(kind, reason=NO_PRODUCT))
        for jaxpr in _inner(eqn.params):
            for part in jaxpr.eqns:
                if part.primitive.name in TWINS:
                    a, b = (var.aval.shape for var in part.invars)
                    shapes = products_of(part.primitive.name, a, b, part.params)
                    where = _title(part, _place(eqn, name))
                    self._found.append(
                        Operator(part.primitive.name, where, shapes, f"it is inside {kind}")
                    )
                elif any(True for _ in _inner(part.params)):
                    self._kept(part, _place(eqn, name))

    def _custom_jvp(self, eqn, inputs, flags, name):
        """A function with a rule for its derivative: both have their products on the core."""
        inner, below = eqn.params["call_jaxpr"], _place(eqn, name)

        @jax.custom_jvp
        def function(*inputs):
            return self._run(inner.jaxpr, inner.consts, inputs, flags, below)[0]

        @function.defjvp
        def _(primals, tangents):
            count = len(primals)

            def both(*flat):
                return jax.jvp(lambda *x: _bind(eqn, x, eqn.params), flat[:count], flat[count:])

            derive = _derive(self._products)
            found = derive(both, (*primals, *tangents), (*flags, *[False] * count), below)
            half = len(found) // 2
            return found[:half], found[half:]

        return function(*inputs)

    def _custom_vjp(self, eqn, inputs, flags, name):
        """A function with a rule for its gradient, likewise."""
        inner, below = eqn.params[_CUSTOM_VJP[eqn.primitive.name]], _place(eqn, name)
        derive, trees = _derive(self._products), []

        @jax.custom_vjp
        def function(*inputs):
            return self._run(inner.jaxpr, inner.consts, inputs, flags, below)[0]

        def forward(*inputs):
            def both(*inputs):
                found = jax.vjp(lambda *x: _bind(eqn, x, eqn.params), *inputs)
                leaves, tree = jax.tree.flatten(found)
                trees.append(tree)
                return leaves

            found = derive(both, inputs, flags, below)
            return jax.tree.unflatten(trees[-1], found)

        def backward(pull, cotangents):
            leaves, tree = jax.tree.flatten((pull, cotangents))

            def gradient(*leaves):
                pull, cotangents = jax.tree.unflatten(tree, leaves)
                return pull(cotangents)

            return tuple(derive(gradient, leaves, [False] * len(leaves), f"vjp({below})"))

        function.defvjp(forward, backward)
        return function(*inputs)

    def _scan(self, params, inputs, flags, name):
        fixed = [flag and n < params["num_consts"] for n, flag in enumerate(flags)]
        return {"jaxpr": self._rewritten(params["jaxpr"], fixed, name)}

    def _while(self, params, inputs, flags, name):
        first, second = params["cond_nconsts"], params["body_nconsts"]
        carry = [False] * (len(inputs) - first - second)
        return {
            "cond_jaxpr": self._rewritten(params["cond_jaxpr"], flags[:first] + carry, name),
            "body_jaxpr": self._rewritten(
                params["body_jaxpr"], flags[first : first + second] + carry, name
            ),
        }

    def _cond(self, params, inputs, flags, name):
        return {"branches": tuple(
            self._rewritten(branch, flags[1:], name) for branch in params["branches"]
        )}

    def _checkpoint(self, params, inputs, flags, name):
        closed = jax.extend.core.ClosedJaxpr(params["jaxpr"], ())
        return {"jaxpr": self._rewritten(closed, flags, name).jaxpr}

    def _rewritten(self, closed, flags, name):
        """The closed jaxpr of a part of an operator, with its products on the core."""
        shapes = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype, weak_type=var.aval.weak_type)
                  for var in closed.jaxpr.invars]

        def function(*inputs):
            return self._run(closed.jaxpr, closed.consts, inputs, flags, name)[0]

        return jax.make_jaxpr(function)(*shapes)


_REWRITTEN = {
    "scan": _Evaluation._scan, "while": _Evaluation._while, "cond": _Evaluation._cond,
    "checkpoint": _Evaluation._checkpoint, "remat": _Evaluation._checkpoint,
    "remat2": _Evaluation._checkpoint,
}


def _derive(products, derived=False):
    """What evaluates functions that JAX derives later from an operator."""
    return lambda *arguments: _Evaluation(products, derived).results(*arguments)


def _bind(eqn, inputs, params):
    """The results of an equation of JAX."""
    bound = eqn.primitive.get_bind_params(params)
    # Older releases return the functions of an operator apart.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    found = eqn.primitive.bind(*functions, *inputs, **params)
    return list(found) if eqn.primitive.multiple_results else [found]


def _inner(params):
    """The jaxprs in the parameters of an equation."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                yield part


def _place(eqn, name):
    """The scopes of an equation inside those of ``name``."""
    return "/".join(part for part in (name, str(eqn.source_info.name_stack)) if part)


def _title(eqn, name):
    """Where an operator is: its scopes, and the line of the source."""
    line = source_info_util.summarize(eqn.source_info)
    where, _, function = line.partition(" ")
    file = ":".join(PurePath(where).name.split(":")[:2])
    parts = [_place(eqn, name), f"{file} {function}".strip() if file.count(":") else ""]
    return ", ".join(part for part in parts if part)
