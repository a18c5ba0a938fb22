"""Training on several simulated cores equals one core that computes the same shards in turn."""

import numpy as np
import pytest
from covering import CONFIGS
from ml_dtypes import bfloat16
from products import check_equal

from weft import Accelerator, Parallel
from weft.golden import matmul_bf16
from weft.sim.transport import SimTransport

# Another test of a quick run builds its model, too.
CONFIG = next(config for config in CONFIGS if config.name == "1x4x1_bf16_ftz_ecp5")
ROWS, INPUTS, HIDDEN, OUTPUTS = 4, 10, 7, 5  # rows of a shard, and sizes of a network
STEPS, RATE = 2, np.float32(2**-6)


def gradients(matmul, weights, shard):
    """The gradients of ``|relu(x w1) w2 - t|**2 / 2``, with products in BF16."""
    (w1, w2), (x, t) = weights, shard
    sums = matmul(x, w1)
    hidden = np.maximum(sums, np.float32(0))
    d = matmul(hidden, w2) - t
    back = matmul(d, w2.T) * (sums > 0)
    return matmul(x.T, back), matmul(hidden.T, d)


def train(step, reduce, weights, shards):
    """The weights after some steps; ``step(weights)`` gives the gradients of each shard."""
    for _ in range(STEPS):
        summed = [reduce(list(parts)) for parts in zip(*step(weights, shards), strict=True)]
        weights = [w - RATE * g for w, g in zip(weights, summed, strict=True)]
    return weights


def golden_product(a, b):
    flush = CONFIG.flush_subnormals
    return matmul_bf16(a.astype(bfloat16), b.astype(bfloat16), flush_subnormals=flush)


def ring_sum(shards):
    """The sum of a ring for arrays of two axes, chunk by chunk."""
    count, flat = len(shards), [shard.reshape(-1) for shard in shards]
    parts = []
    for n, indices in enumerate(np.array_split(np.arange(flat[0].size), count)):
        total = flat[(n + 1) % count][indices]
        for step in range(2, count + 1):
            total = total + flat[(n + step) % count][indices]
        parts.append(total)
    return np.concatenate(parts).reshape(shards[0].shape)


def on_cores(parallel):
    """The gradients of each shard, by the cores."""
    def step(weights, shards):
        def of(core, shard):
            return gradients(lambda a, b: core.matmul(a, b, cast=True), weights, shard)

        return parallel.map(of, shards)

    return step


def busy(parallel):
    return np.array([each["busy"] for each in parallel.counters()])


@pytest.mark.parametrize("count, speed", [(2, 1.9), (4, 3.7)])
def test_training_on_cores_equals_one_core(count, speed):
    rng = np.random.default_rng(count)
    weights = [
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((INPUTS, HIDDEN), (HIDDEN, OUTPUTS))
    ]
    shards = [
        tuple(rng.standard_normal((ROWS, size)).astype(np.float32) for size in (INPUTS, OUTPUTS))
        for _ in range(count)
    ]
    want = train(
        lambda weights, shards: [gradients(golden_product, weights, shard) for shard in shards],
        ring_sum, weights, shards,
    )
    cycles = []
    for cores in (1, count):
        with Parallel([Accelerator(SimTransport(CONFIG)) for _ in range(cores)]) as parallel:
            before = busy(parallel)
            found = train(on_cores(parallel), Parallel.all_reduce, weights, shards)
            cycles.append(max(busy(parallel) - before))
        for each, wanted in zip(found, want, strict=True):
            check_equal(each, wanted)
    one, several = cycles
    assert one >= speed * several


def test_simulated_cores_share_a_product():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(bfloat16) for shape in ((2, 9), (9, 10)))
    with Parallel([Accelerator(SimTransport(CONFIG)) for _ in range(3)]) as three:
        check_equal(three.matmul(a, b), golden_product(a, b))
