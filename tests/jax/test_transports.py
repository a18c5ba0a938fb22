"""Any core computes the products: the simulated hardware, one behind TCP; on one processor, too."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weft import Accelerator, Config
from weft.host import GoldenTransport
from weft.jax import offload

CONFIG = Config(dtype="bf16", rows=4, cols=4)
ONE_PROCESSOR = """\
import jax, os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax.numpy as jnp
from weft import Accelerator, Config
from weft.host import GoldenTransport
from weft.jax import offload
core = Accelerator(GoldenTransport(Config(dtype="bf16", rows=8, cols=8)))
x = jnp.ones((600, 600))
print(float(jax.jit(offload(lambda x: ((x * 2) @ x[:, :2]).sum(), core))(x)))
"""


def loss(p, x):
    hidden = jax.lax.conv_general_dilated(
        x, p["k"], (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return (jax.nn.relu(hidden).reshape(len(x), -1) @ p["w"]).sum() ** 2


@pytest.mark.slow
def test_large_operands_on_one_processor():
    """A callback of JAX may wait for a copy by the only thread, which waits for the callback."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity of processors")
    done = subprocess.run(
        [sys.executable, "-c", ONE_PROCESSOR], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, f"{600.0 * 600 * 2 * 2}\n"), done.stderr


@pytest.mark.slow
def test_the_simulated_core_gives_the_bits_of_golden():
    from weft.sim.transport import SimTransport

    rng = np.random.default_rng(1)
    p = {"k": rng.normal(size=(3, 3, 2, 3)), "w": rng.normal(size=(36, 4))}
    p = jax.tree.map(lambda w: jnp.asarray(w, jnp.float32), p)
    x = jnp.asarray(rng.normal(size=(2, 6, 4, 2)), jnp.float32)
    found = []
    for transport in (SimTransport(CONFIG), GoldenTransport(CONFIG)):
        with Accelerator(transport) as accelerator:
            before = accelerator.counters()["busy"]
            gradient = offload(jax.grad(loss), accelerator)
            found.append(jax.block_until_ready(gradient(p, x)))
            report = gradient.report()
            assert report.cycles == accelerator.counters()["busy"] - before > 0
    for name in p:
        assert np.array_equal(*(np.asarray(g[name]).view(np.uint32) for g in found))
