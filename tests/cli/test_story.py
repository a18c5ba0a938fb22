"""``weft story``: its text, its timeline, and what a wrong core is told."""

import contextlib
import re
from pathlib import Path

import pytest
from golden_language_core import GoldenLanguageCore

from weft.cli import language, main, story_timeline
from weft.golden.language.sampling import sampling
from weft.language_core.cycles import token_cycles

pytest.importorskip("matplotlib")


@pytest.fixture
def on_core(monkeypatch):
    """``on_core(wrong=..., late=...)``: commands simulate no core, but use this one."""
    def use(**faults):
        core = GoldenLanguageCore(story_timeline.stories().weights, **faults)
        monkeypatch.setattr(
            language, "simulated_core", lambda config: contextlib.nullcontext(core)
        )

    return use


def test_a_story_and_its_timeline(here, capsys, on_core):
    on_core()
    assert main(["story", "--tokens", "20", "--prompt", "One day"]) == 0
    said = capsys.readouterr()
    session = story_timeline.stories().open()
    text = "".join(session.generate("One day", 20))
    assert said.out == f"One day{text}\n"
    lines = said.err.splitlines()
    assert "text equal to the golden model, cycles as predicted" in lines[1]
    names = [line.split("  ")[0] for line in lines[3:-1]]
    assert names == [
        "embedding", "norm", "q, k, v", "rope", "cache", "scores", "exp", "values", "wo", "w1, w3",
        "silu", "w2", "classifier",
    ]
    cycles = int(lines[1].split()[0].replace(",", ""))
    spent = sum(int(line.split()[-1].replace(",", "")) for line in lines[3:-1])
    assert cycles - 40 < spent < cycles
    assert (here / "out" / "story.png").stat().st_size > 5_000


SAMPLED = "--temperature", "0.8", "--min-p", "0.05", "--seed", "3"


def test_a_story_at_a_temperature(here, capsys, on_core):
    """From each command; the timeline has the choice of the token."""
    story_timeline.stories().save(here / "own.weft")
    program = story_timeline.stories()
    on_core(how=sampling(0.8, 0.05, program.weights.logit_bits))
    session = program.open()
    text = "".join(session.generate("Tom", 8, temperature=0.8, min_p=0.05, seed=3))
    for words in (["story"], ["run", "own.weft", "--on", "sim"]):
        assert main([*words, "--tokens", "8", "--prompt", "Tom", *SAMPLED]) == 0
        said = capsys.readouterr()
        assert said.out == f"Tom{text}\n"
        assert "text equal to the golden model, cycles as predicted" in said.err
        assert ("\nsampling " in said.err) == (words == ["story"])


@pytest.mark.exit_code("story", 1)
@pytest.mark.parametrize("faults, text", [
    ({"wrong": 9}, "text DIFFERENT from the golden model, cycles as predicted"),
    ({"ends": 5}, "text DIFFERENT from the golden model, cycles as predicted"),
    ({"late": 1}, "text equal to the golden model, cycles NOT as predicted"),
])
def test_a_wrong_core_is_told(here, capsys, on_core, faults, text):
    on_core(**faults)
    assert main(["story", "--tokens", "12"]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("words, text", [
    (["story", "--prompt", "é"], "é"), (["story", "--prompt", "a " * 300], "must have at most 255"),
    (["run", "own.weft", "--on", "sim", "--temperature", "0.001"], "must be 0, or in 0.01..100"),
    (["story", "--min-p", "0.1"], "min-p must be 0 without a temperature, not 0.1"),
])
def test_a_wrong_argument_builds_no_model(here, capsys, monkeypatch, words, text):
    story_timeline.stories().save(here / "own.weft")
    monkeypatch.setattr(language, "simulated_core", lambda config: pytest.fail("built"))
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and text in said.err


def test_the_readme_has_the_cycles_of_a_token():
    found = re.search(
        r"With (\d+)\s+positions in its cache, a token takes ([\d,]+) cycles",
        (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8"),
    )
    program = language.core_writer(story_timeline.stories()).program
    cycles = token_cycles(program.passes, int(found[1]) - 1)
    assert found[2] == f"{cycles:,}"


def test_the_command_run_uses_the_core_too(here, capsys, on_core):
    on_core()
    story_timeline.stories().save(here / "own.weft")
    assert main(["run", "own.weft", "--on", "sim", "--tokens", "5"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("on a simulated core: 5 tokens after 1 of the prompt")


@pytest.mark.slow
def test_it_runs(here, capsys):
    """A story of 40 tokens on the simulated core."""
    assert main(["story", "--tokens", "40"]) == 0
    assert "text equal to the golden model, cycles as predicted" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sampled_text_runs(here, capsys):
    """40 tokens at a temperature on the simulated core, and the same on the golden model."""
    story_timeline.stories().save(here / "own.weft")
    words = ["run", "own.weft", "--tokens", "40", *SAMPLED]
    assert main([*words, "--on", "sim"]) == 0
    said = capsys.readouterr()
    assert "text equal to the golden model, cycles as predicted" in said.err
    assert main(words) == 0
    assert capsys.readouterr().out == said.out
