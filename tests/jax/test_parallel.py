"""Gradients of the shards of a batch on several cores, added in a ring: those of one core."""

import jax
import jax.numpy as jnp
import numpy as np
from ml_dtypes import bfloat16

from weft import Accelerator, Config, Parallel
from weft.golden.bf16 import matmul_bf16
from weft.host import GoldenTransport
from weft.jax import offload

CONFIG = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64)
SHARDS = 4


def loss(w, x, wanted):
    return jnp.sum((x @ w - wanted) ** 2)


def gradients(count, w, shards):
    """The gradient of each shard, and their sum in a ring, from ``count`` cores."""
    cores = Parallel([Accelerator(GoldenTransport(CONFIG)) for _ in range(count)])
    of = {core: offload(jax.grad(loss), core) for core in cores.cores}
    parts = cores.map(lambda core, shard: np.asarray(of[core](w, *shard)), shards)
    cores.close()
    return parts, Parallel.all_reduce(parts)


def test_several_cores_have_the_gradients_of_one():
    rng = np.random.default_rng(3)
    w = rng.normal(size=(7, 5)).astype(np.float32)
    shards = [
        (rng.normal(size=(6, 7)).astype(np.float32), rng.normal(size=(6, 5)).astype(np.float32))
        for _ in range(SHARDS)
    ]
    one, total = gradients(1, w, shards)
    for count in (2, 4):
        parts, found = gradients(count, w, shards)
        assert np.array_equal(found.view(np.uint32), total.view(np.uint32))
        for part, wanted in zip(parts, one, strict=True):
            assert np.array_equal(part.view(np.uint32), wanted.view(np.uint32))
    # The chain of the golden model: x.T @ (2 * (x @ w - wanted)).
    x, wanted = shards[0]
    x = x.astype(bfloat16)
    errors = matmul_bf16(x, w.astype(bfloat16)) - wanted
    chain = matmul_bf16(x.T, (np.float32(2) * errors).astype(bfloat16))
    assert np.array_equal(one[0].view(np.uint32), chain.view(np.uint32))
