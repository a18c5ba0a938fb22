"""Runs of the cocotb benches: their reports, and their failures on wrong hardware."""

import fcntl

import pytest
from broken_verilog import with_output
from rejects import rejects
from tiers import tiers

from weft.config import Config
from weft.hw.export import verilog as export
from weft.sim.build import folder
from weft.sim.runner import BenchError, run
from weft.sim.tools import ToolError

TINY = Config(rows=1, cols=1, depth=1, a_words=32, b_words=32)
FLOAT = Config(
    dtype="bf16", rows=1, cols=1, lanes=1, c_words=0, activation="none", bytes_in=64, bytes_out=1,
    a_words=32, b_words=32,
)


@pytest.fixture(scope="session")
def tiny():
    """The Verilog of TINY."""
    return export(TINY)


@pytest.fixture
def benches(tiny, tmp_path):
    """Runs TINY on Icarus, in a temporary folder."""

    def benches(verilog=tiny, **options):
        return run(TINY, "icarus", **{"build_dir": tmp_path, "verilog": verilog} | options)

    return benches


@pytest.mark.slow
@pytest.mark.parametrize("names, count", [
    (["flow/idle=0", "shapes"], 4),
    pytest.param(["flow", "shapes"], 10, marks=pytest.mark.long),
])
def test_benches_of_a_name(benches, names, count):
    assert benches(testcase=names).tests == count
    assert benches(testcase="flow/idle=0/stall=50").tests == 1


@pytest.mark.slow
def test_seed_decides_the_run(benches):
    case = "flow/idle=50/stall=50"
    cycles = [benches(testcase=case, seed=seed).cycles for seed in (3, 3, 4)]
    assert cycles[0] == cycles[1] != cycles[2]


def test_ignores_the_environment_of_the_caller(benches, monkeypatch):
    monkeypatch.setenv("COCOTB_TEST_FILTER", "nothing")
    monkeypatch.setenv("COCOTB_RANDOM_SEED", "9")
    monkeypatch.setenv("WAVES", "1")
    outcome = benches(testcase="shapes")
    assert (outcome.tests, outcome.seed) == (1, 1)
    assert not [*outcome.log.parent.glob("*.fst")]


# A wrong value of a port, the benches that see it, and what they report.
WRONG = {
    "data": ("res_data", "{} ^ 1", "shapes", r"job \d+, word 0 \(row 0, from column 0 on\) must"),
    "unknown": ("res_data", "128'bx", "shapes", "res_data must be known in all its bits, not X"),
    "last": (
        "res_last", "1'b0", "shapes", r"last of job \d+ must come with word \d+, and is 0",
    ),
    "tag": ("res_tag", "{} ^ 1", "shapes", r"tag of a result must be \d+, not \d+"),
    "status": (
        "res_status", "8'd2", "shapes", "must end with <Status: 0>, not <Status.REJECTED: 2>",
    ),
    "withdrawn": (
        "res_valid", "{} & ~cmd_valid", "flow", "a valid result word must stay until it is taken",
    ),
    "changed": (
        "res_data", "{} + cmd_valid", "flow", "a valid result word must not change until it",
    ),
    "waits": (
        "res_valid", "{} & res_ready", "queue_full", "res_valid must not wait for res_ready",
    ),
    "description": ("reg_data", "{} | 1", "description", r"description must be \[\d+"),
    "activity": (
        "activity", "{} | 32", "shapes", r"transferred for \d+ cycles: 0 command words pending",
    ),
    "no result": ("res_valid", "1'b0", "shapes", r"no word was transferred for \d+ cycles"),
    "no command": (
        "cmd_ready", "1'b0", "shapes", r"\d+ command words pending, jobs without results: \d+, ",
    ),
}


@pytest.mark.parametrize("case", tiers(
    WRONG, "data", long={*WRONG} - {"data", "no result", "last", "unknown"}
))
def test_fails_on_wrong_hardware(benches, tiny, case):
    port, value, testcase, message = case
    with pytest.raises(BenchError, match=message) as caught:
        benches(with_output(tiny, "weft", port, value), testcase=testcase)
    assert caught.value.outcome.failures >= 1
    assert str(caught.value.outcome.log) in str(caught.value)
    assert "on Icarus Verilog 1" in str(caught.value) and ", seed 1: " in str(caught.value)


@pytest.mark.slow
def test_fails_on_verilator(tiny):
    with pytest.raises(BenchError, match="1 of 1 failed; see .*\n  shapes: job"):
        run(
            TINY, "verilator", build_dir=folder() / "mutants", testcase="shapes",
            verilog=with_output(tiny, "weft", "res_data", "{} ^ 1"),
        )


@pytest.mark.slow
def test_a_failure_names_the_seed_of_its_product(tmp_path):
    broken = with_output(export(FLOAT), "weft", "res_data", "{} ^ 1")
    with pytest.raises(BenchError, match=r"seed 1: 1 of 1 failed.*\n  seeds: job \d+ of seed 0, "):
        run(FLOAT, "icarus", build_dir=tmp_path, testcase="seeds", verilog=broken)


def test_fails_without_tests(benches):
    with pytest.raises(BenchError, match="no test matches 'nothing'; see "):
        benches(testcase="nothing")


@pytest.mark.slow
def test_fails_if_the_simulator_hangs(benches, tmp_path, monkeypatch):
    (tmp_path / "hanging_bench.py").write_text(
        "import cocotb, time\n\n@cocotb.test()\nasync def hangs(dut):\n    time.sleep(600)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BenchError, match="seed 1, did not end within 4 s; see "):
        benches(modules=["hanging_bench"], limit=4)


def test_fails_if_a_bench_ends_the_simulator(benches, tmp_path, monkeypatch):
    (tmp_path / "dying_bench.py").write_text(
        "import cocotb, os\n\n@cocotb.test()\nasync def dies(dut):\n    os._exit(0)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BenchError, match="wrote no results.xml; see .*test.log"):
        benches(modules=["dying_bench"])


def test_fails_if_verilog_does_not_compile(benches):
    with pytest.raises(ToolError, match="Icarus Verilog did not compile weft-1x1x1 and ended "):
        benches("module weft(input clk;")


@pytest.mark.slow
def test_another_verilog_is_another_build(benches, tiny):
    benches(testcase="shapes")
    with pytest.raises(BenchError, match="shapes: job"):
        benches(with_output(tiny, "weft", "res_data", "{} ^ 1"), testcase="shapes")
    benches(testcase="shapes")


def test_one_run_in_a_folder_at_a_time(benches, tmp_path):
    benches(testcase="shapes")
    lock = next(tmp_path.glob("*/lock"))
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = f"another run uses {lock.parent}; wait until it ends"
        with rejects(BenchError, message):
            benches(testcase="shapes")


def test_rejects_an_unknown_simulator(tmp_path):
    message = "simulator must be one of icarus, verilator, not 'vcs'"
    with pytest.raises(ValueError, match=f"^{message}$"):
        run(TINY, "vcs", build_dir=tmp_path)
