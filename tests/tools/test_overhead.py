"""The overhead of a step of training: medians of its parts, and the repeated results are golden."""

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
    assert set(found) == {"plain", "weft", "driver", "rest"}
    assert found["plain"] > 0 and found["driver"] > 0
    assert found["driver"] + found["rest"] == pytest.approx(found["weft"])


def test_some_fast_or_slow_steps_do_not_matter(monkeypatch):
    """By hand: a plain step, one of Weft, and one whose parts are timed, 20 times."""
    config = Config(dtype="bf16", rows=2, cols=2, lanes=1)
    transport = overhead.Repeating(config)
    clock = {"process": 0.0, "thread": 0.0}
    monkeypatch.setattr(overhead.time, "process_time", lambda: clock["process"])
    monkeypatch.setattr(overhead.time, "thread_time", lambda: clock["thread"])
    plain = iter([9.0, 9.0, 0.4, 2.0, *[1.0] * 5, *[1.2] * 13])
    weft = iter([9.0, 9.0, 0.1, 40.0, *[2.5] * 10, *[3.0] * 8])

    class Accelerator:
        steps = 0

        def execute(self):
            transport.send([(Job(0, 0, 0, 0, 0, 0, 0, 0, 0), b"")])
            clock["thread"] += 0.75

    monkeypatch.setattr(overhead.ProductStream, "read", lambda: None)
    monkeypatch.setattr(
        transport, "send", lambda commands: clock.update(thread=clock["thread"] + 0.5))
    accelerator = Accelerator()

    def step():
        accelerator.execute()
        overhead.ProductStream.read()
        accelerator.steps += 1
        if accelerator.steps % 2 == 0:  # after one of a pair, and the first one of all
            clock["process"] += next(weft) + 0.5

    def plain_step():
        clock["process"] += next(plain)

    found = overhead.measured(plain_step, step, accelerator, transport, runs=18)
    assert found == pytest.approx({"plain": 1000, "weft": 2500, "driver": 750, "rest": 1750})


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
    parts = {"plain": 1.0, "weft": 3.0, "driver": 1.0, "rest": 2.0}
    saved = []
    monkeypatch.setattr(jax_overhead, "measure", lambda batch: parts)
    monkeypatch.setattr(overhead.results, "save", lambda *given, **named: saved.append(given))
    assert jax_overhead.main() == 0
    parts["weft"] = 3.1
    assert jax_overhead.main() == 1
    assert [name for name, _ in saved] == ["jax-overhead"] * 2
    assert "| 50 | 1.00 ms | 3.10 ms | 1.00 ms | 2.00 ms | 3.10 |" in capsys.readouterr().out


def test_the_parts_of_a_step_in_pytorch():
    pytest.importorskip("torch", reason="needs the package torch: pip install torch")
    from tools import torch_overhead

    found = torch_overhead.measure(2, runs=2)
    assert found["plain"] > 0 and found["driver"] > 0
