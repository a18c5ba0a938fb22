"""The overhead of a step of training: medians of its parts, and the repeated results are golden."""

import itertools

import jax
import numpy as np
import pytest

from tools import jax_overhead, overhead
from weft import Accelerator, Config
from weft.commands import Job
from weft.host import GoldenTransport
from weft.host.transport import Commands
from weft.jax import offload


def test_the_parts_of_a_step():
    found = jax_overhead.measure(2, runs=2)
    assert set(found) == {"plain", "weft", "driver", "rest", "ratio"}
    assert all(value > 0 for value in found.values())
    # Medians of two steps are their means.
    assert found["driver"] + found["rest"] == pytest.approx(found["weft"])


def test_some_fast_or_slow_steps_do_not_matter(monkeypatch):
    """Times of plain steps and of Weft's steps; the core's are 0."""
    pairs = [(9.0, 9.0), (9.0, 9.0), (1.0, 2.0), (0.1, 2.0), (1.0, 2.5), (1.0, 30.0), (2.0, 5.0)]
    times = itertools.chain.from_iterable((0.0, each) for pair in pairs for each in pair)
    monkeypatch.setattr(overhead.time, "process_time", lambda: next(times))
    monkeypatch.setattr(overhead.time, "thread_time", lambda: 0.0)
    transport = overhead.Repeating(Config(dtype="bf16", rows=2, cols=2, lanes=1))
    accelerator = Accelerator(transport)
    a = np.eye(2, dtype=np.float32)

    def step():
        accelerator.prepare((2, 2), a, cast=True)(a)

    found = overhead.measured(lambda: None, step, accelerator, transport, runs=5)
    assert (found["plain"], found["weft"], found["ratio"]) == (1000.0, 2500.0, 2.5)


def test_the_core_repeats_the_results_of_the_golden_core():
    config = Config(dtype="bf16", rows=8, cols=8, lanes=4)
    module = overhead.example("jax")
    images, labels = module.digits()
    arguments = module.start(np.random.default_rng(1)), images[:3], labels[:3]
    repeating = overhead.Repeating(config)
    steps = [
        offload(module.train_step, Accelerator(transport))
        for transport in (repeating, GoldenTransport(config))
    ]
    wanted = jax.tree.leaves(steps[1](*arguments))
    for _ in range(3):
        for x, y in zip(jax.tree.leaves(steps[0](*arguments)), wanted, strict=True):
            assert np.array_equal(np.asarray(x), np.asarray(y))
        repeating.repeat()
    packets = [p for parts in repeating._round.values() for part in parts for p in part]
    assert repeating._counters["finished"] == len(packets)  # two rounds without the golden core


def test_products_in_another_order_get_their_results():
    config = Config(dtype="bf16", rows=2, cols=2, lanes=1)
    repeating = overhead.Repeating(config)
    accelerator = Accelerator(repeating)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 2)).astype(np.float32)
    prepared = [
        accelerator.prepare(x.shape, rng.normal(size=(2, n)).astype(np.float32), cast=True)
        for n in (1, 2, 2)
    ]
    wanted = [one(x) for one in prepared]
    repeating.repeat()
    for order in ((1, 0, 2), (1, 2, 0), (0, 1, 2)):
        for place in order:
            assert np.array_equal(prepared[place](x), wanted[place])
    with pytest.raises(KeyError):
        repeating.send(Commands(config, [(Job(0, 0, 0, 0, 0, 0, 0, 0, 0), b"")]))


def test_a_large_ratio_fails(monkeypatch, capsys):
    parts = {"plain": 1.0, "weft": 2.9, "driver": 1.0, "rest": 2.0, "ratio": 3.0}
    saved = []
    monkeypatch.setattr(jax_overhead, "measure", lambda batch: parts)
    monkeypatch.setattr(overhead.results, "save", lambda *given, **named: saved.append(given))
    assert jax_overhead.main() == 0
    parts["ratio"] = 3.1
    assert jax_overhead.main() == 1
    assert [name for name, _ in saved] == ["jax-overhead"] * 2
    assert "| 50 | 1.00 ms | 2.90 ms | 1.00 ms | 2.00 ms | 3.10 |" in capsys.readouterr().out


def test_the_parts_of_a_step_in_pytorch():
    pytest.importorskip("torch", reason="needs the package torch: pip install torch")
    from tools import torch_overhead

    found = torch_overhead.measure(2, runs=2)
    assert all(value > 0 for value in found.values())
