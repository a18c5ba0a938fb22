"""The staircase for learners: its commands print what its pages show, and break as they say."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from weft import cli

ROOT = Path(__file__).resolve().parent.parent
STEPS = ["pe", "row", "array", "buffer", "layer", "network"]
PAGES = {
    step: (ROOT / "docs" / "learn" / f"{step}.md").read_text(encoding="utf-8") for step in STEPS
}
steps = pytest.mark.parametrize("step", STEPS)


def blocks(step):
    """The command of a page, its output, the change that breaks something, and its output."""
    found = re.findall(r"^```(.*?)\n(.*?)^```$", PAGES[step], re.M | re.S)
    command, output, picture, change, broken = found
    assert picture[0].startswith("{image}")
    return [text for _, text in (command, output, change, broken)]


def words(text):
    return " ".join(text.split())


def changed(source, diff):
    """The text of a file after a change, whose old lines must stand in it once."""
    lines = diff.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    assert source.count(old) == 1
    return source.replace(old, new)


@pytest.fixture
def printed(monkeypatch, capsys, tmp_path):
    """What a command of a page prints; with a change, to a copy of its program."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")

    def run(command, diff=None):
        name, *arguments = shlex.split(command)
        if name == "weft":
            assert cli.main(arguments) == 0
        else:
            assert name == "python"
            program = ROOT / arguments[0]
            if diff is not None:
                source = changed(program.read_text(encoding="utf-8"), diff)
                program = tmp_path / program.name
                program.write_text(source, encoding="utf-8")
            monkeypatch.setattr(sys, "argv", arguments)
            try:
                runpy.run_path(str(program), run_name="__main__")
            except SystemExit as end:
                assert end.code == (diff is not None)
        return [words(line) for line in capsys.readouterr().out.splitlines()]

    return run


def assert_shown(block, lines):
    """Each line of a block is printed, in this order; ``...`` stands for a part left out."""
    start = 0
    for line in block.splitlines():
        whole, part = "..." not in line, words(line.replace("...", ""))
        places = [
            n for n, text in enumerate(lines[start:], start)
            if (part == text if whole else part in text)
        ]
        assert places, f"not printed: {line}"
        start = places[0]


@steps
def test_the_command_prints_what_the_page_shows(step, printed):
    command, output, *_ = blocks(step)
    assert_shown(output, printed(command))


@steps
def test_the_number_of_the_page_is_printed(step, printed):
    command, output, *_ = blocks(step)
    [number] = re.findall(r"\*\*(.*?)\*\*", PAGES[step])
    pattern = rf"(?<![\w,.-]){re.escape(number)}(?![\w,.])"
    assert re.search(pattern, output)
    assert re.search(pattern, "\n".join(printed(command)))


@steps
def test_the_change_breaks_what_the_page_says(step, printed):
    command, _, change, output = blocks(step)
    whole = printed(command)
    broken = printed(command, change) if change.startswith("-") else printed(change)
    assert_shown(output, broken)
    new = {words(line.replace("...", "")) for line in output.splitlines()}
    assert not any(part in text for part in new for text in whole)


@pytest.mark.parametrize("size, most", [((1, 1), 1), ((1, 4), 4), ((4, 4), 12), ((8, 3), None)])
def test_results_of_every_size_equal_numpy(size, most):
    simulate = runpy.run_path(str(ROOT / "examples" / "staircase.py"))["simulate"]
    cycles, results, wanted = simulate(*size)
    assert results.tolist() == wanted.tolist()
    if most is not None:  # the pages name it
        assert max(sum(enabled for enabled, _ in cells) for _, _, cells, _ in cycles) == most


@pytest.mark.parametrize("arguments, said", [
    (["0"], "rows must be in 1..8, not 0"), (["4", "9"], "cols must be in 1..8, not 9"),
])
def test_the_program_rejects_other_sizes(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["staircase.py", *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "examples" / "staircase.py"), run_name="__main__")
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {said}\n")


@steps
def test_a_page_is_short_and_has_one_picture(step):
    prose = re.sub(r"^```.*?^```", "", PAGES[step], flags=re.M | re.S)
    assert 150 <= len(prose.split()) <= 350
    assert re.findall(r"^```\{image\} \.\./_static/(.*)$", PAGES[step], re.M) == [
        f"learn-{step}.svg"
    ]


def test_each_page_leads_to_the_next():
    for number, step in enumerate(STEPS, 1):
        assert PAGES[step].startswith(f"# {number}. ")
        last = PAGES[step][PAGES[step].index("## Break it"):]
        assert [n for n in STEPS[number:] if f"]({n}.md)" in last] == STEPS[number : number + 1]
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    door = next(line for line in index.splitlines() if line.startswith("| a class to teach |"))
    assert f"](learn/{STEPS[0]}.md)" in door


def test_detects_a_line_that_is_not_printed():
    with pytest.raises(AssertionError, match="not printed: two"):
        assert_shown("one\ntwo\n", ["one", "two three"])
    assert_shown("one\ntwo ...\n", ["one", "two three"])
