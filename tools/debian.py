"""Debian packages for the set-up: installed by apt as root, or unpacked into a folder by others."""

import os
import re
import shutil
import sysconfig
from pathlib import Path

__all__ = ["available", "install", "unpack", "wrappers"]

MULTIARCH = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"

# What a compiler links against. Every machine has them, and programs must load the machine's own.
_SYSROOT = ["libc6", "libgcc-s1", "libstdc++6"]


def available() -> bool:
    """Whether this system's packages are Debian's."""
    return bool(shutil.which("apt-get") and shutil.which("dpkg"))


def install(names, run):
    """Install ``names`` system-wide, without a question; ``run(what, command)`` runs one step."""
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run("apt-get update", [*quiet, "update"])
    command = [*quiet, "install", "-y", "--no-install-recommends", *names]
    run(f"apt-get install {' '.join(names)}", command)


def unpack(names, root: Path, run):
    """Download ``names`` with all they lack here, and unpack them below ``root``.

    The libraries that the unpacked programs need are linked in ``root/run``.
    """
    apt = root / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "debs"):
        (apt / folder).mkdir(parents=True)
    get = ["apt-get", "-qq", "-o", "Debug::NoLocking=1"]
    get += ["-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache"]
    run("package lists of Debian", [*get, "update"])
    plan = run(
        f"what {', '.join(names)} need",
        [*get, "--simulate", "--no-install-recommends", "install", *names],
    )
    lacking = re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
    _fetch([name for name in lacking if name not in _SYSROOT], apt / "debs", root, get, run)
    (root / "run").mkdir()
    for library in sorted(_libraries(root)):
        (root / "run" / library.name).symlink_to(library)
    if "g++" in names:
        _fetch(_SYSROOT, apt / "debs", root, get, run)
        for folder in ("lib", "lib64"):  # newer packages hold these below /usr only
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
    """``(name, shell command)`` of each program below ``root`` that is to run from there."""
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
