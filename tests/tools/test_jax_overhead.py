"""The overhead of a step of training: its parts add up, and the repeated results are golden."""

import jax
import numpy as np

from tools import jax_overhead
from weft import Accelerator, Config
from weft.host import GoldenTransport


def test_the_parts_of_a_step():
    found = jax_overhead.measure(2, runs=2)
    assert set(found) == {"plain", "weft", "driver", "rest"}
    assert all(value > 0 for value in found.values())
    # Each is the least of two steps.
    assert found["driver"] + found["rest"] <= found["weft"] * 1.0001


def test_the_core_repeats_the_results_of_the_golden_core():
    config = Config(dtype="bf16", rows=8, cols=8, lanes=4)
    module = jax_overhead.example()
    images, labels = module.digits()
    arguments = module.start(np.random.default_rng(1)), images[:3], labels[:3]
    repeating = jax_overhead._Repeating(config)
    steps = [
        jax_overhead.offload(module.train_step, Accelerator(transport))
        for transport in (repeating, GoldenTransport(config))
    ]
    wanted = jax.tree.leaves(steps[1](*arguments))
    for _ in range(3):
        for x, y in zip(jax.tree.leaves(steps[0](*arguments)), wanted, strict=True):
            assert np.array_equal(np.asarray(x), np.asarray(y))
        if repeating._place is None:
            repeating.repeat()
    assert repeating._place == 0  # two whole rounds, without the golden core
    assert repeating._counters["finished"] == len([p for part in repeating._round for p in part])


def test_a_large_ratio_fails(monkeypatch, capsys):
    parts = {"plain": 1.0, "weft": 3.0, "driver": 1.0, "rest": 2.0}
    saved = []
    monkeypatch.setattr(jax_overhead, "measure", lambda batch: parts)
    monkeypatch.setattr(jax_overhead.results, "save", lambda *given, **named: saved.append(given))
    assert jax_overhead.main() == 0
    parts["weft"] = 3.1
    assert jax_overhead.main() == 1
    assert [name for name, _ in saved] == ["jax-overhead"] * 2
    assert "| 50 | 1.00 ms | 3.10 ms | 1.00 ms | 2.00 ms | 3.10 |" in capsys.readouterr().out
