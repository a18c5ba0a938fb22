"""Write the lock files: every package of a purpose, with its version and hashes."""

import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["LOCKS", "main"]

ROOT = Path(__file__).resolve().parent.parent
PIP_TOOLS = "pip-tools==7.6.2"

# The extras of pyproject.toml in each lock. Every lock contains `sim` at the same versions, so that
# one environment serves all purposes.
LOCKS = {
    "sim": ["hw", "sim", "serial", "report", "networks", "onnx", "usb"],
    "test": [
        "hw", "sim", "serial", "report", "networks", "onnx", "usb", "explore", "kit", "docs",
        "language", "test",
    ],
    "kit": ["hw", "sim", "serial", "report", "networks", "onnx", "usb", "kit", "interop"],
    "train": ["hw", "sim", "serial", "report", "networks", "onnx", "usb", "train"],
}

HEADER = """\
# Made by `make lock` from pyproject.toml: do not edit. For `make {name}`, on Python 3.11 and newer.
"""


def main() -> int:
    """Resolve every lock with the oldest supported Python; newer ones can install it too."""
    if sys.version_info[:2] != (3, 11):
        found = "{}.{}".format(*sys.version_info)
        print(f"lock: Python must be 3.11, the oldest supported, not {found}", file=sys.stderr)
        return 2
    tools = ROOT / "build" / "lock"
    if not (tools / "bin" / "pip-compile").exists():
        venv.create(tools, with_pip=True)
        subprocess.run([tools / "bin" / "pip", "install", "--quiet", PIP_TOOLS], check=True)
    # Use the public index only, not the indexes and wheels configured on this machine.
    env = {name: value for name, value in os.environ.items() if name not in _INDEXES}
    env["PIP_CONFIG_FILE"] = os.devnull
    for name, extras in LOCKS.items():
        _compile(tools / "bin" / "pip-compile", name, extras, env)
    return 0


_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")


def _compile(pip_compile, name, extras, env):
    """Write one lock file; the old one is replaced when the new one is complete."""
    lock, new = ROOT / "locks" / f"{name}.txt", ROOT / "build" / "lock" / f"{name}.txt"
    print(f"locks/{name}.txt: resolving {', '.join(extras)} ...", flush=True)
    command = [
        pip_compile, "--quiet", "--strip-extras", "--generate-hashes",
        "--no-header", "--no-annotate",
        "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host",
        "--allow-unsafe", "--build-deps-for", "editable",  # setuptools builds weft itself
        "--output-file", new,
    ]
    command += [word for extra in extras for word in ("--extra", extra)]
    if name != "sim":
        command += ["--constraint", ROOT / "locks" / "sim.txt"]
    new.unlink(missing_ok=True)  # otherwise pip-compile keeps its versions
    subprocess.run([*command, ROOT / "pyproject.toml"], check=True, env=env, cwd=ROOT)
    lines = new.read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    text = HEADER.format(name=name) + "\n".join(pinned) + "\n"
    new.write_text(text, encoding="utf-8")
    lock.parent.mkdir(exist_ok=True)
    new.replace(lock)


if __name__ == "__main__":
    sys.exit(main())
