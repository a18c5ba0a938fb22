"""Debian packages for the set-up: installed with apt as root, otherwise unpacked into a folder."""

import os
import re
import shutil
import sysconfig
from pathlib import Path

__all__ = ["available", "install", "unpack", "wrappers"]

MULTIARCH = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"

# Libraries that a compiler links. Programs must load the machine's own copies of them.
_SYSROOT = ["libc6", "libgcc-s1", "libstdc++6"]


def available() -> bool:
    """Whether this system has apt and dpkg."""
    return bool(shutil.which("apt-get") and shutil.which("dpkg"))


def install(names, run):
    """Install ``names`` system-wide without prompts; ``run(name, command)`` runs one step."""
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run("apt-get update", [*quiet, "update"])
    command = [*quiet, "install", "-y", "--no-install-recommends", *names]
    run(f"apt-get install {' '.join(names)}", command)


def unpack(names, root: Path, run):
    """Download ``names`` with their missing dependencies, and unpack them below ``root``.

    The folder ``root/run`` gets links to the libraries that the unpacked programs need.
    """
    apt = root / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "debs"):
        (apt / folder).mkdir(parents=True)
    get = ["apt-get", "-qq", "-o", "Debug::NoLocking=1"]
    get += ["-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache"]
    run("package lists of Debian", [*get, "update"])
    plan = run(
        f"dependencies of {', '.join(names)}",
        [*get, "--simulate", "--no-install-recommends", "install", *names],
    )
    packages = re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
    _fetch([name for name in packages if name not in _SYSROOT], apt / "debs", root, get, run)
    (root / "run").mkdir()
    for library in sorted(_libraries(root)):
        (root / "run" / library.name).symlink_to(library)
    if "g++" in names:
        _fetch(_SYSROOT, apt / "debs", root, get, run)
        for folder in ("lib", "lib64"):  # newer packages have these below /usr only
            if not (root / folder).exists() and (root / "usr" / folder).exists():
                (root / folder).symlink_to(f"usr/{folder}")
    shutil.rmtree(apt)


def _fetch(names, debs, root, get, run):
    run(f"{len(names)} Debian packages", [*get, "download", *names], cwd=debs)
    for deb in sorted(debs.glob("*.deb")):
        run(None, ["dpkg", "--extract", deb, root])
        deb.unlink()


def _libraries(root):
    for folder in ("lib", "usr/lib"):
        yield from (root / folder / MULTIARCH).glob("*.so*")


def wrappers(root: Path):
    """``(name, shell command)`` for each program that runs from below ``root``."""
    usr, ivl = f"{root}/usr/bin", f"{root}/usr/lib/{MULTIARCH}/ivl"
    load = f'LD_LIBRARY_PATH="{root}/run${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" exec'
    if os.path.exists(f"{usr}/iverilog"):
        yield "iverilog", f'{load} "{usr}/iverilog" -B "{ivl}"'
        yield "vvp", f'{load} "{usr}/vvp" -M "{ivl}"'
    for compiler, names in (("g++", ("c++", "g++")), ("gcc", ("cc", "gcc"))):
        for binary in sorted((root / "usr/bin").glob(f"{MULTIARCH}-{compiler}-[0-9]*")):
            for name in names:
                yield name, f'{load} "{binary}" --sysroot="{root}" -B"{usr}/"'
    if os.path.exists(f"{usr}/{MULTIARCH}-ar"):
        yield "ar", f'{load} "{usr}/{MULTIARCH}-ar"'
