"""Functions of JAX as models of ONNX, which onnxruntime runs, and as programs of a network core."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import weft
from weft import Config
from weft.jax import export, to_onnx
from weft.jax.nodes import NODES
from weft.models.errors import ModelError
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.config import NetworkCoreConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jax.md"
CORE = NetworkCoreConfig(
    array=Config(rows=4, cols=4, depth=4, requantize="onnx", activation="none"), words=1024
)


def conv(x, w, steps=(1, 1), padding="SAME", names=("NHWC", "HWIO", "NHWC"), **given):
    return jax.lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=names, **given)


def pooled(x, start, combine, size=(1, 2, 2, 1), steps=(1, 2, 1, 1), padding="SAME"):
    return jax.lax.reduce_window(x, start, combine, size, steps, padding)


# Functions of weights and of a map [samples, 4, 6, 3], or of what `reshape` makes of it.
MAPS = {
    "channels last": lambda p, x: conv(jax.nn.relu(conv(x, p["k"]) + p["b3"]), p["k"], (2, 1)),
    "channels first": lambda p, x: conv(
        x.transpose(0, 3, 1, 2), p["k"].transpose(3, 2, 0, 1), names=("NCHW", "OIHW", "NCHW")),
    "grouped and dilated": lambda p, x: conv(
        x, p["k"][:, :, :1], padding=((2, 1), (0, 3)), feature_group_count=3,
        rhs_dilation=(2, 1)),
    "flattened": lambda p, x: conv(x, p["k"]).reshape(len(x), -1) @ p["flat"] + p["b3"],
    "flattened, then a ReLU": lambda p, x: jax.nn.relu(conv(x, p["k"]).reshape(len(x), -1))
    @ p["flat"],
    "parts flattened": lambda p, x: conv(x, p["k"]).reshape(len(x), 4, -1) * 2,
    "two readers": lambda p, x: (lambda y: (y + p["b3"]) * y)(conv(x, p["k"])),
    "a product of channels": lambda p, x: jnp.einsum("nhwc,co->nhwo", conv(x, p["k"]), p["b"]),
    "computed product": lambda p, x: jnp.einsum("nhc,nwc->nhw", x.mean(2), x.mean(1)),
    "max pool": lambda p, x: pooled(conv(x, p["k"]), -jnp.inf, jax.lax.max),
    "average pool": lambda p, x: pooled(conv(x, p["k"]), 0.0, jax.lax.add) / 4,
    "sums": lambda p, x: conv(x, p["k"]).sum((1, 2)) + conv(x, p["k"]).max((2, 1)),
    "least": lambda p, x: conv(x, p["k"]).min(3),
    "softmax": lambda p, x: jax.nn.softmax(conv(x, p["k"]).mean((1, 2))),
    "which": lambda p, x: jnp.argmax(conv(x, p["k"]), 3),
    "joined": lambda p, x: jnp.concatenate([conv(x, p["k"]), x], 3),
    "moved": lambda p, x: (conv(x, p["k"]) * p["k"][0, 0, 0]).transpose(0, 2, 3, 1) - 1,
    "norm": lambda p, x: x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-3) * p["b3"],
    "one image wide": lambda p, x: x + p["k"].sum((0, 1)).sum(0)[None, None, :],
    "functions": lambda p, x: sum((
        jnp.tanh(x), jax.nn.sigmoid(x), jnp.exp(-x), jnp.log(jnp.abs(x) + 1), jnp.sqrt(x * x),
        jax.lax.erf(x), jnp.sign(x), jnp.abs(x) ** 1.5, x**3, jnp.minimum(x, 0.5),
        jnp.maximum(0.25, x), jnp.clip(x, -1, 0.5), jax.nn.gelu(x), jax.nn.silu(x),
        1 / (x * x + 1), jnp.square(x),
    )),
    "chosen": lambda p, x: sum((
        jnp.where(x > 0, x, 2 * x), jnp.where(x < 1, x, 0), jnp.where(x >= 0, 1.0, x),
        jnp.where(x <= 0, 3.0, x), jnp.where(x == 0, 1.0, x),
    )),
    "kept": lambda p, x: jax.checkpoint(lambda x: jax.lax.stop_gradient(x) + 1)(x),
}


def weights():
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in {
        "k": (3, 3, 3, 3), "b": (3, 3), "b3": (3,), "flat": (72, 3)}.items()}


def run(model, x):
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("name", MAPS)
def test_models_equal_functions(name):
    p, x = weights(), np.random.default_rng(4).normal(size=(3, 4, 6, 3)).astype(np.float32)
    found, wanted = run(to_onnx(MAPS[name], p, x), x), np.asarray(jax.jit(MAPS[name])(p, x))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_every_operator_has_a_test():
    """Each rule is used by a function above."""
    p, x = weights(), jnp.zeros((1, 4, 6, 3))
    used = set()

    def visit(jaxpr):
        for eqn in jaxpr.eqns:
            used.add(eqn.primitive.name)
            for value in eqn.params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    visit(inner)

    for function in MAPS.values():
        visit(jax.make_jaxpr(function)(p, x).jaxpr)
    # Which of the names of one operation JAX uses depends on its version.
    assert set(NODES) - used <= {
        "squeeze", "expand_dims", "copy", "optimization_barrier", "add_any", "integer_pow",
        "square", "pow", "clamp", "stop_gradient", "neg",
    }


def test_channels_last_need_no_transposition_inside():
    def network(p, x):
        return conv(jax.nn.relu(conv(x, p["k"]) + p["b3"]), p["k"]).reshape(len(x), -1) @ p["flat"]

    model = onnx.load_from_string(to_onnx(network, weights(), np.zeros((2, 4, 6, 3), np.float32)))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Transpose") == 1 and kinds[0] == "Transpose"


def network(p, x):
    x = jax.nn.relu(conv(x, p["k"]) + p["b3"])
    x = pooled(x, -jnp.inf, jax.lax.max, steps=(1, 2, 2, 1), padding="VALID")
    return x.reshape(len(x), -1) @ p["flat"][:18] + p["b3"]


def test_a_program_runs_on_a_network_core(tmp_path):
    p, x = weights(), np.random.default_rng(5).normal(size=(64, 4, 6, 3)).astype(np.float32)
    program = export(network, p, x, CORE, name="small")
    assert program.name == "small" and not [step for step in program.host if step.macs]
    program.save(tmp_path / "small.weft")
    again = weft.load(tmp_path / "small.weft")
    wanted = np.asarray(network(p, x[:16]))
    with again.open(GoldenRunner(CORE)) as session:
        found = np.concatenate([session(one[None]) for one in x[:16]])
    noise = np.square(found - wanted).mean() / np.square(wanted).mean()
    assert 10 * np.log10(noise) < -25  # dB


@pytest.mark.parametrize("function, x, message", [
    (lambda p, x: jnp.sort(x), np.zeros((2, 3), np.float32),
     r"sort at .*test_export.py:\d+.* must be one of the operators of export: abs, add, "),
    (lambda p, x: conv(x, x), np.zeros((1, 1, 1, 1), np.float32),
     "conv_general_dilated at .*: the kernel must be constant, and the map computed"),
    (lambda p, x: conv(x, np.ones((1, 1, 1, 1), np.float32), padding=((0, 0), (0, 0)),
                       lhs_dilation=(2, 2)),
     np.zeros((1, 3, 3, 1), np.float32), "it must have no lhs_dilation and no batch groups"),
    (lambda p, x: (x, x), np.zeros((1, 3), np.float32), "the result must be one array of samples"),
    (lambda p, x: x.sum(), np.zeros((1, 3), np.float32), "the result must be one array of samples"),
    (lambda p, x: jnp.ones((1, 3)), np.zeros((1, 3), np.float32),
     "the result must depend on x, not be constant"),
    (lambda p, x: x.sum(0, keepdims=True), np.zeros((1, 3), np.float32),
     "it must leave the first axis, the batch, as it is"),
    (lambda p, x: x, np.zeros((0, 3), np.float32),
     r"x must have one sample or more, not the shape \(0, 3\)"),
])
def test_rejects(function, x, message):
    with pytest.raises(ModelError, match=message):
        to_onnx(function, {}, x)


def test_rejects_a_function_that_mixes_samples():
    def function(p, x):
        return (x @ p["b"]).reshape(-1, 3) + x[0]

    x = np.random.default_rng(6).normal(size=(4, 3)).astype(np.float32)
    with pytest.raises(ModelError):
        export(function, weights(), x, CORE)


def test_the_blocks_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 3
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert "operators on Weft" in capsys.readouterr().out
