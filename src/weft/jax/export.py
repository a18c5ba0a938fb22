"""``export``: a function of JAX becomes a program for a network core, by way of ONNX."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.extend import source_info_util

from weft.jax.nodes import NODES, Builder, Value
from weft.models.errors import ModelError
from weft.models.loading import load

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork

__all__ = ["export", "to_onnx"]

_CHECKED = 8  # samples for which the model of ONNX is compared with the function
_OPERATORS = 17  # of the operator set; onnxruntime's quantizer knows it
# Functions whose contents take their place; the rules of their derivatives do not matter here.
_FUNCTIONS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_INLINED = {
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "checkpoint", "remat", "remat2",
}


def export(
    function: Callable, params, x, target="ulx3s-85f-networks-onnx", *, name: str = "network",
    method: str = "min-max",
) -> "CompiledNetwork":
    """Return the program of ``function(params, x)`` for a network core, quantized to int8.

    The function becomes a float model of ONNX, which onnxruntime quantizes: weights per channel,
    ranges of activations from ``x``. `weft.load` reads it, and the program is compiled for the
    target. Results of the program equal those of onnxruntime (`docs/runtimes.md`).

    Parameters
    ----------
    function : callable
        Its result is one array, with the samples along its first axis.
    params
        Tree of arrays: the weights, which become constants.
    x : array of float32 [samples, ...]
        Inputs for the calibration. The function is traced for one sample.
    target : optional
        As for `weft.models.loading.NeuralNetwork.compile`. A network core needs
        ``requantize = "onnx"``, as the default has it.
    name : str
        Name of the network.
    method : str
        How ranges are taken: ``min-max``, ``entropy`` or ``percentile``.

    Raises
    ------
    ModelError
        If an operator has no equivalent in ONNX, or the target does not fit. The message names the
        operator. The extra onnx must be installed.

    Write the program with ``program.save("net.weft")``.
    """
    from weft.models.onnx.quantize import Feeds, prepare, quantize

    file = f"{name}.onnx"
    x = np.asarray(x, np.float32)
    model = to_onnx(function, params, x, name=name)
    prepared = prepare(model, file)
    _check(model, function, params, x[:_CHECKED])
    feeds = Feeds({"x": x}, prepared, "x")
    return load(quantize(prepared, file, feeds, method=method), name).compile(target)


def to_onnx(function: Callable, params, x, *, name: str = "network") -> bytes:
    """Return the float model of ONNX of ``function(params, x)``.

    Its input ``x`` and its output ``y`` have any number of samples. Arguments and errors are those
    of `export`.
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        from weft.hints import to_install

        raise ModelError(f"export needs the package onnx; {to_install(extra='onnx')}") from error
    x = np.asarray(x)
    if x.ndim < 1 or not len(x):
        raise ModelError(f"x must have one sample or more, not the shape {x.shape}")
    sample = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    weights, tree = jax.tree.flatten(params)

    def flat(weights, x):
        return function(jax.tree.unflatten(tree, weights), x)

    closed, shape = jax.make_jaxpr(flat, return_shape=True)(weights, sample)
    if not hasattr(shape, "shape") or len(shape.shape) < 1 or shape.shape[0] != 1:
        raise ModelError(f"the result must be one array of samples, not {shape}")
    build = Builder()
    given = Value("x", tuple(sample.shape), x.dtype, tuple(range(x.ndim)))
    arguments = [*(np.asarray(w) for w in weights), given]
    (y,) = _run(build, closed.jaxpr, closed.consts, arguments)
    if isinstance(y, np.ndarray):
        raise ModelError("the result must depend on x, not be constant")
    build.nodes.append(onnx.helper.make_node("Identity", [build.ordered(y)], ["y"]))

    def described(name, value):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        return onnx.helper.make_tensor_value_info(name, kind, ["samples", *value.shape[1:]])

    graph = onnx.helper.make_graph(
        build.nodes, name, [described("x", sample)], [described("y", shape)], build.constants
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", _OPERATORS)], ir_version=8
    )
    return model.SerializeToString()


def _check(model, function, params, x):
    """Raise ModelError if the model of ONNX does not compute the function.

    A function that mixes its samples is the same for one sample only.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found, wanted = session.run(None, {"x": x})[0], np.asarray(function(params, x))
    limit = 1e-3 * max(1e-6, float(np.abs(wanted).max()))
    if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-3, atol=limit):
        raise ModelError(
            "the function must compute each sample alone: for several samples at once it differs"
            " from its model of ONNX, which was traced for one"
        )


def _run(build, jaxpr, consts, arguments, place=""):
    """The results of a jaxpr: each a Value, or an array if it is constant.

    ``place`` is where the jaxpr is called: functions of JAX itself have no line of a user.
    """
    values = dict(zip(jaxpr.constvars, map(np.asarray, consts), strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(var):
        return np.asarray(var.val) if hasattr(var, "val") else values[var]

    for eqn in jaxpr.eqns:
        inputs = [read(var) for var in eqn.invars]
        kind = eqn.primitive.name
        where = source_info_util.summarize(eqn.source_info) or place
        if kind in _INLINED:
            inner = next(eqn.params[key] for key in _FUNCTIONS if key in eqn.params)
            closed = getattr(inner, "jaxpr", inner)
            found = _run(build, closed, getattr(inner, "consts", ()), inputs, where)
        elif all(isinstance(x, np.ndarray) for x in inputs):
            found = eqn.primitive.bind(*inputs, **eqn.params)
            found = found if eqn.primitive.multiple_results else [found]
            found = [np.asarray(x) for x in found]
        else:
            found = [_node(build, eqn, inputs, where)]
        values.update(zip(eqn.outvars, found, strict=True))
    return [read(var) for var in jaxpr.outvars]


def _node(build, eqn, inputs, where):
    """The result of an operator that depends on the input."""
    kind = eqn.primitive.name
    if kind not in NODES:
        known = ", ".join(sorted(NODES))
        raise ModelError(f"{kind} at {where} must be one of the operators of export: {known}")
    try:
        return NODES[kind](build, eqn, *inputs)
    except ModelError as error:
        raise ModelError(f"{kind} at {where}: {error}") from error
