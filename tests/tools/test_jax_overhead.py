"""The overhead of a step of training: its parts add up, and are those of the golden core."""

from tools import jax_overhead


def test_the_parts_of_a_step():
    found = jax_overhead.measure(2, runs=2)
    assert set(found) == {"plain", "step", "core", "driver", "rest", "with driver"}
    assert all(value > 0 for value in found.values())
    # Each is the least of two steps.
    assert found["core"] + found["driver"] + found["rest"] <= found["step"] * 1.0001
    assert found["rest"] < found["with driver"] < found["step"]


def test_a_large_ratio_fails(monkeypatch, capsys):
    parts = {"plain": 1.0, "step": 9.0, "core": 4.0, "driver": 2.0, "rest": 3.0, "with driver": 5.0}
    saved = []
    monkeypatch.setattr(jax_overhead, "measure", lambda batch: parts)
    monkeypatch.setattr(jax_overhead.results, "save", lambda *given, **named: saved.append(given))
    assert jax_overhead.main() == 0
    parts["rest"] = 3.1
    assert jax_overhead.main() == 1
    assert [name for name, _ in saved] == ["jax-overhead"] * 2
    assert "| 50 | 1.00 ms | 9.00 ms | 4.00 ms | 2.00 ms | 3.10 ms | 3.10 | 5.00 |" in (
        capsys.readouterr().out
    )
