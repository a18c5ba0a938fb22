"""``weft sim`` on a small design: its steps, output, files and exit codes."""

import contextlib
import dataclasses
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from folders import files

import weft.cycles
import weft.demo
import weft.golden
from weft.cli import activity, main
from weft.config import Config
from weft.hw.export import verilog
from weft.sim import runner, tools

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ["--rows", "2", "--cols", "2", "--depth", "2", "--a-words", "256", "--b-words", "256"]
CONFIG = Config(rows=2, cols=2, depth=2, a_words=256, b_words=256)
HEAD = "2x2x2: 8 MAC/cycle, 16 bytes/cycle in, 16 bytes/cycle out"
# Tiles are 225 down, and 32, 16 and 5 across; each takes 32, 32 or 16 cycles.
COMPUTING = 225 * (32 * 32 + 16 * 32 + 5 * 16)
TABLE = [
    r"layer 1\s+450 x 64 x 64\s+([\d,]+)\s+\1\s+99\.9%\s+yes",
    r"layer 2\s+450 x 64 x 32\s+([\d,]+)\s+\1\s+99\.9%\s+yes",
    r"layer 3\s+450 x 32 x 10\s+([\d,]+)\s+\1\s+99\.9%\s+yes",
    r"all\s+([\d,]+)\s+\1\s+yes",
    r"Accuracy on 450 images: 97\.33% INT8 on the hardware, 97\.56% float32\.",
]


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def no_picture(monkeypatch):
    """Hide matplotlib, to save the time for drawing."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def few_images(monkeypatch):
    """The network on 30 images instead of 450, where their number does not matter."""
    images, labels = weft.demo.digits_images()
    monkeypatch.setattr(weft.demo, "digits_images", lambda: (images[:30], labels[:30]))


@pytest.mark.slow
def test_runs_checks_and_network(here, capsys, monkeypatch):
    whole = runner.run  # all benches take a minute; tests of the runner run them
    monkeypatch.setattr(runner, "run", lambda *a, **k: whole(*a, **k, testcase="shapes"))
    assert main(["sim", *SMALL, "--seed", "3"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"{HEAD}\n   ...  generating Verilog\n")
    for simulator in ("icarus", "verilator"):
        done = f"  done  running cocotb benches on {simulator} against golden, seed 3 "
        assert done in said.out
    assert len(re.findall(r"^ {8}\d+ benches passed in [\d,]+ cycles$", said.out, re.M)) == 2
    for line in TABLE:
        assert re.search(line, said.out), line
    assert said.out.endswith("\nActivity of the array over time: out/activity.png\n")
    assert files(here) == ["out/activity.png"]
    data = (here / "out/activity.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1600, 900)


@pytest.mark.slow
def test_network_only_skips_the_checks(here, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "weft.cli.activity.activity_picture", lambda *arguments: drawn.append(arguments)
    )
    monkeypatch.setattr(runner, "run", lambda *args, **kwargs: pytest.fail("checked"))
    monkeypatch.setattr(tools, "icarus", lambda: pytest.fail("asked for Icarus"))
    assert main(["sim", *SMALL, "--network-only", "--out", "my/place"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{HEAD}\n   ...  building the simulated accelerator\n")
    for line in TABLE:
        assert re.search(line, said), line
    assert said.endswith("\nActivity of the array over time: my/place/activity.png\n")
    # Every busy cycle of the three layers is drawn, and no other cycle.
    [(path, timeline, title)] = drawn
    assert (str(path), title) == ("my/place/activity.png", "Digits network on 2x2x2")
    total = int(re.search(TABLE[3], said)[1].replace(",", ""))
    assert timeline.flags.size == total
    assert np.all(timeline.flags & activity.BUSY)
    assert np.count_nonzero(timeline.flags & activity.COMPUTING) == COMPUTING
    first, second = (int(re.search(line, said)[1].replace(",", "")) for line in TABLE[:2])
    starts = (("layer 1", 0), ("layer 2", first), ("layer 3", first + second))
    assert timeline.layers == starts


FLOATS = ["--dtype", "bf16", "--rows", "2", "--cols", "2", "--a-words", "256", "--b-words", "256"]


@pytest.mark.long
@pytest.mark.parametrize("more, accuracy", [
    ([], r"97\.78%"),
    (["--c-words", "0", "--flush-subnormals"], r"97\.\d\d%"),  # the host adds the bias, at the end
])
def test_runs_the_network_in_bf16(more, accuracy, capsys, no_picture):
    assert main(["sim", *FLOATS, *more, "--network-only"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2x2x1_bf16")
    for layer in (r"layer 1\s+450 x 64 x 64", r"layer 2\s+450 x 64 x 32", "all"):
        assert re.search(rf"{layer}\s+([\d,]+)\s+\1\s+.*yes", said), layer
    assert re.search(rf"450 images: {accuracy} BF16 on the hardware, 97\.56% float32\.", said)


@pytest.mark.long
def test_writes_a_trace_of_bf16_products(here, capsys):
    assert main(["sim", *FLOATS, "--waves"]) == 0
    assert "results equal golden" in capsys.readouterr().out
    assert files(here) == ["out/weft.vcd"]


@pytest.mark.slow
def test_says_why_there_is_no_picture(here, capsys, no_picture, few_images):
    assert main(["sim", *SMALL, "--network-only"]) == 0
    assert capsys.readouterr().out.endswith(
        "Activity of the array over time: not drawn, because matplotlib is not installed;"
        f" type, in {ROOT}: make setup, or: pip install -e '.[report]'\n"
    )
    assert files(here) == []


@pytest.mark.exit_code("sim", 1)
def test_fails_if_a_sum_differs_from_golden(capsys, monkeypatch, no_picture, few_images):
    real = weft.golden.matmul

    def wrong(a, b, **options):
        sums = real(a, b, **options)
        if b.shape[1] == 32:
            sums[-1, -1] += 1 << 20  # large enough to be visible after the clamp
        return sums

    monkeypatch.setattr(weft.golden, "matmul", wrong)
    assert main(["sim", *SMALL, "--network-only"]) == 1
    said = capsys.readouterr()
    assert re.findall(r"%\s+(yes|NO)", said.out) == ["yes", "NO", "yes"]
    assert said.err == "weft: error: results of layer 2 must equal the golden model's\n"


@pytest.mark.slow
def test_fails_if_cycles_differ_from_the_prediction(capsys, monkeypatch, no_picture, few_images):
    real = weft.cycles.predict

    def late(config, commands):
        prediction = real(config, commands)
        return dataclasses.replace(prediction, cycles=prediction.cycles + 1)

    monkeypatch.setattr(weft.cycles, "predict", late)
    assert main(["sim", *SMALL, "--network-only"]) == 1
    said = capsys.readouterr()
    rows = re.findall(r"layer \d\s.*?([\d,]+)\s+([\d,]+)\s+[\d.]+%", said.out)
    assert said.err == "weft: error: " + "".join(
        f"cycles of layer {n} must equal the prediction of {predicted}, not {cycles}\n"
        for n, (cycles, predicted) in enumerate(rows, 1)
    )
    numbers = [[int(text.replace(",", "")) for text in row] for row in rows]
    assert [predicted - cycles for cycles, predicted in numbers] == [1, 1, 1]


@pytest.mark.long
def test_checks_the_same_verilog_on_both_simulators(capsys, monkeypatch, tmp_path):
    runs = []

    def failing(config, simulator, **options):
        runs.append((config, simulator, options))
        if simulator == "verilator":
            raise runner.BenchError("1 of 31 failed")
        return runner.Outcome("x", 30, 0, 1234, 1.0, 1.0, 9, None)

    monkeypatch.setattr(runner, "run", failing)
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    assert main(["sim", *SMALL, "--seed", "9"]) == 1
    said = capsys.readouterr()
    assert "\n        30 benches passed in 1,234 cycles\n" in said.out
    failed = said.out.splitlines()[-1]
    assert failed.startswith("failed  running cocotb benches on verilator against golden, seed 9 ")
    assert said.err == "weft: error: 1 of 31 failed\n"
    assert [run[:2] for run in runs] == [(CONFIG, "icarus"), (CONFIG, "verilator")]
    for _, _, options in runs:
        assert {**options, "build_dir": str(options["build_dir"])} == {
            "build_dir": str(tmp_path / "benches"), "seed": 9, "verilog": verilog(CONFIG),
        }


@pytest.mark.long
def test_waves_writes_a_trace(here, capsys):
    assert main(["sim", *SMALL, "--waves"]) == 0
    said = capsys.readouterr().out
    path = here / "out/weft.vcd"
    last = f"out/weft.vcd: all signals, {path.stat().st_size:,} bytes; results equal golden"
    assert said.splitlines()[-1] == last
    for shape in ("16 x 16 x 16", "13 x 7 x 9"):
        assert f"  done  multiplying {shape}, seed 1 " in said
    text = path.read_text()
    assert text.count("$enddefinitions $end") == 1
    assert re.search(r"\$var wire +1 \S+ cmd_valid", text)
    assert files(here) == ["out/weft.vcd"]


@pytest.mark.long
def test_waves_fails_if_a_result_differs(capsys, monkeypatch):
    real = weft.golden.matmul
    monkeypatch.setattr(weft.golden, "matmul", lambda a, b: real(a, b) + (a.shape[0] == 16))
    assert main(["sim", *SMALL, "--waves"]) == 1
    said = capsys.readouterr()
    assert said.out.endswith(" bytes; results DIFFER from golden\n")
    assert said.err == "weft: error: results must equal the golden model's\n"


ICARUS = (
    "Icarus Verilog (11.0 or newer) was not found: no iverilog on PATH;"
    f" type, in {ROOT}: make setup, or: sudo apt-get install iverilog"
)
VERILATOR = (
    "Verilator (5.036 or newer) was not found: no verilator on PATH;"
    f" type, in {ROOT}: make setup"
)


@pytest.mark.parametrize("arguments, text", [
    ([], ICARUS), (["--network-only"], VERILATOR), (["--waves"], VERILATOR),
])
def test_names_a_missing_simulator(here, capsys, monkeypatch, arguments, text):
    monkeypatch.setattr(sys, "executable", str(here / "bin" / "python"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(tools, "_package", lambda name: None)  # the one from PyPI
    assert main(["sim", *SMALL, *arguments]) == 2
    assert capsys.readouterr() == ("", f"weft: error: {text}\n")
    assert files(here) == [] and not (here / "out").exists()


def test_stops_on_ctrl_c_and_leaves_no_process(here):
    # A process that is started in the background may ignore the signal.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeds}; import sys; from weft.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "sim", *SMALL, "--network-only"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process, contextlib.ExitStack() as after:
        after.callback(process.kill)
        for line in process.stdout:
            if "running 450 images: 1 of 3" in line:
                break
        os.killpg(process.pid, signal.SIGINT)  # as a terminal: the model gets the signal, too
        said = process.communicate(timeout=600)
        assert process.returncode == 130
    assert said[0].splitlines()[-1].startswith("failed  ")
    assert said[1] == "weft: stopped\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert files(here) == []


def test_rejects_an_output_that_is_no_folder(here, capsys):
    (here / "file").touch()
    assert main(["sim", *SMALL, "--out", "file"]) == 2
    text = "cannot write to the output folder: [Errno 17] File exists: 'file'"
    assert capsys.readouterr() == ("", f"weft: error: {text}\n")


def test_rejects_a_wrong_config(here, capsys):
    assert main(["sim", "--rows", "0", "--cols", "65"]) == 2
    text = "weft: error: rows must be in 1..64, not 0\ncols must be in 1..64, not 65\n"
    assert capsys.readouterr() == ("", text)
    assert files(here) == []


@pytest.mark.parametrize("seed", ["-1", "x", "", "1.5"])
def test_rejects_a_wrong_seed(seed, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["sim", f"--seed={seed}"])
    last = capsys.readouterr().err.splitlines()[-1]
    text = f"argument --seed: seed must be an integer of 0 or more, not {seed!r}"
    assert last == f"weft sim: error: {text}; see weft sim --help"


def test_rejects_network_only_with_waves(capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["sim", "--network-only", "--waves"])
    last = capsys.readouterr().err.splitlines()[-1]
    text = "argument --waves: not allowed with argument --network-only"
    assert last == f"weft sim: error: {text}; see weft sim --help"


@pytest.mark.parametrize("arguments, name", [
    (["--network-only"], "activity.png"), (["--waves"], "weft.vcd"),
])
def test_rejects_an_output_that_is_a_folder_before_any_work(here, capsys, arguments, name):
    (here / "out" / name).mkdir(parents=True)
    assert main(["sim", *SMALL, *arguments]) == 2
    text = f"weft: error: output must be a file; out/{name} is a folder\n"
    assert capsys.readouterr() == ("", text)
