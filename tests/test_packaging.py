"""The built package is complete and works without the checkout."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from tooling import load

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = {"weft": "src/weft", "weft.hw": "hw", "weft.sim": "sim", "weft.boards": "boards"}
CACHES = shutil.ignore_patterns("__pycache__", "*.egg-info")


def files():
    """``path in a wheel -> file`` for all files of the packages."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                inner = path.relative_to(ROOT / folder).as_posix()
                found[f"{package.replace('.', '/')}/{inner}"] = path
    return found


def run(*command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the source distribution."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, tree / folder, ignore=CACHES)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tree / "dist", tree, cwd=tree)
    return next((tree / "dist").glob("weft-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """``bin`` of an environment with the wheel and the packages that it depends on."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home / "venv", symlinks=True)
    python = home / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-index", "--no-deps", wheel, cwd=home)
    # As a plain path: .pth files in it, such as an editable Weft, are not read.
    site = run(python, "-c", "import sysconfig as s; print(s.get_path('purelib'))", cwd=home)
    link = Path(site.strip(), "dependencies.pth")
    link.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python.parent


def test_package_list_equals_the_folders():
    inits = [name for name in files() if name.endswith("/__init__.py")]
    packages = sorted(name.removesuffix("/__init__.py").replace("/", ".") for name in inits)
    assert PROJECT["tool"]["setuptools"]["packages"] == packages


def test_every_folder_with_modules_is_a_package():
    folders = {name.rpartition("/")[0] for name in files()}
    assert [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in files()] == []


@pytest.mark.slow
def test_wheel_has_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {n: archive.read(n) for n in archive.namelist() if ".dist-info/" not in n}
    assert sorted(held) == sorted(files())
    assert [n for n, path in files().items() if held[n] != path.read_bytes()] == []


@pytest.mark.slow
def test_wheel_runs_from_its_own_files(installed, tmp_path):
    code = "import weft, weft.boards, weft.hw.core, weft.sim.tools, sys\n"
    code += "weft = [m for name, m in sys.modules.items() if name.startswith('weft')]\n"
    code += "print(*(m.__file__ for m in weft), sep='\\n')"
    lines = run(installed / "python", "-c", code, cwd=tmp_path).splitlines()
    assert len(lines) > 8
    assert all(Path(line).is_relative_to(installed.parent) for line in lines)


@pytest.mark.parametrize("arguments, said", [(["--help"], "usage: weft"), (["info"], "8")])
def test_command_runs(installed, tmp_path, arguments, said):
    assert said in run(installed / "weft", *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("commands", [
    "weft run digits.tflite --board icebreaker --for networks --check tflm",
    "weft new icebreaker 'my own' --network digits.tflite; make -C 'my own' lint run ON=golden",
    pytest.param("weft report digits.tflite --board icebreaker", marks=pytest.mark.slow),
    pytest.param("weft boards; weft devices --no-ask --json; weft doctor", marks=pytest.mark.slow),
    pytest.param("weft generate -o core.v; weft generate --bus axi -o kit", marks=pytest.mark.long),
    pytest.param("weft demo; weft run digits.tflite --on board --board icebreaker --for networks",
                 marks=pytest.mark.long),
    pytest.param("weft new icebreaker mine; make -C mine sim", marks=pytest.mark.long),
])
def test_the_wheel_does_what_the_checkout_does(installed, tmp_path, monkeypatch, commands):
    """In a folder without the checkout, with the programs of the environment and the system."""
    site = Path(sysconfig.get_path("scripts"))
    monkeypatch.setenv("PATH", f"{installed}:{site}:/usr/bin:/bin")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    shutil.copy(ROOT / "src" / "weft" / "demo" / "digits_cnn.tflite", tmp_path / "digits.tflite")
    run("bash", "-euc", commands, cwd=tmp_path)


def test_the_extra_all_has_what_the_commands_use():
    """A new extra must be in it, or here: for checks of Weft, for a search on a cluster, or for a
    framework."""
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    # No command uses a framework, and PyTorch from PyPI takes 5 GB.
    others = "all", "docs", "explore", "interop", "jax", "test", "torch", "train"
    assert everything == f"weft[{','.join(sorted({*extras} - {*others}))}]"


def test_hints_of_the_wheel_do_not_name_the_makefile(installed, tmp_path):
    code = "from weft.hints import to_install; print(to_install(extra='kit'))"
    said = run(installed / "python", "-c", code, cwd=tmp_path)
    assert re.fullmatch(r"type: pip install 'peakrdl[<>=,.\d]+'\n", said)


def test_locks_have_all_requirements():
    """Every requirement of each extra is pinned, with hashes, in its lock."""
    extras = PROJECT["project"]["optional-dependencies"]
    for name, wanted in load("lock").LOCKS.items():
        lock = (ROOT / "locks" / f"{name}.txt").read_text(encoding="utf-8")
        requirements = sum((extras[w] for w in wanted), PROJECT["project"]["dependencies"])
        packages = [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]
        lacking = [package for package in packages if f"\n{package}==" not in lock]
        assert lacking == [], f"locks/{name}.txt is behind pyproject.toml: make lock"


def test_locks_agree():
    """One environment fits all locks: they pin the same versions."""
    blocks = {}
    for path in ROOT.glob("locks/*.txt"):
        text = path.read_text(encoding="utf-8").replace(" \\\n ", "")
        blocks[path.stem] = {line for line in text.splitlines() if not line.startswith("#")}
    assert set(blocks) == {"sim", "test", "train", "kit"}
    assert all(blocks["sim"] <= block for block in blocks.values())
