"""The driver without a library, and on processors of 32 bits: no warning, no symbol it lacks."""

import re
import subprocess

import pytest

from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import documents
from weft.kit.driver import driver
from weft.kit.files.weft_driver import compiler

FLAGS = ["-std=c99", "-ffreestanding", "-fno-builtin", "-Wall", "-Wextra", "-Wconversion",
         "-Wsign-conversion", "-pedantic", "-Werror"]
LINK = ["-nostdlib", "-shared", "-fPIC", "-Wl,-z,defs"]  # a symbol that is nowhere is an error
CASES = {
    "axi": ("axi", {}), "stream": ("stream", {}), "dma": ("dma", {}),
    "bf16 axi": ("axi", {"dtype": "bf16", "c_words": 32}),
    "bf16 dma": ("dma", {"dtype": "bf16", "c_words": 32}),
}


def compiled(folder, *flags):
    """What the compiler says of all the sources in a folder; empty where it takes them."""
    done = subprocess.run(
        [*compiler(), *FLAGS, *flags, *sorted(path.name for path in folder.glob("*.c"))],
        cwd=folder, capture_output=True, text=True,
    )
    return done.stderr if done.returncode or done.stderr else ""


def takes(folder, flags):
    """Whether this compiler knows the flags."""
    (folder / "probe.c").write_text("int probe(int x);\nint probe(int x) { return x; }\n")
    return not compiled(folder, *flags)


@pytest.fixture(params=CASES, scope="module")
def sources(request, tmp_path_factory):
    """A folder with the driver of a core."""
    bus, more = CASES[request.param]
    ip = Ip(config=Config(rows=2, cols=4, a_words=64, b_words=64, **more), bus=bus)
    header = f"{ip.name}_regs.h"
    folder = tmp_path_factory.mktemp("driver")
    for name, data in (driver(ip) | {header: documents(ip, "0")[header]}).items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_wants_no_symbol(sources, level):
    assert compiled(sources, *LINK, level, "-o", "driver.so") == ""


def test_sets_no_object_at_once(sources):
    """Clang calls memset for an object that is ``{0}``; GCC for x86 sets it in place."""
    for path in sources.glob("*.c"):
        assert re.findall(r"= *{ *0 *}", path.read_text()) == [], path.name


def test_missing_symbol_is_seen(tmp_path):
    (tmp_path / "lacks.c").write_text("int there(void);\nint here(void);\n"
                                      "int here(void) { return there(); }\n")
    assert "there" in compiled(tmp_path, *LINK, "-o", "lacks.so")


def test_is_clean_on_32_bits(sources, tmp_path):
    flags = ["-m32", "-fsyntax-only"]
    if not takes(tmp_path, flags):
        pytest.skip("this compiler has no 32-bit target")
    assert compiled(sources, *flags) == ""


@pytest.mark.parametrize("chosen, found, command", [
    ("riscv-cc -O2", ["riscv-cc", "cc", "gcc"], ["riscv-cc", "-O2"]),
    ("", ["cc", "gcc"], ["cc"]),
    ("", ["gcc"], ["gcc"]),
])
def test_compiler_is_chosen(monkeypatch, tmp_path, chosen, found, command):
    for name in found:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", chosen)
    assert compiler() == command


@pytest.mark.parametrize("chosen, names", [("riscv-cc", "riscv-cc"), ("", "cc or gcc")])
def test_says_that_there_is_no_compiler(monkeypatch, tmp_path, chosen, names):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", chosen)
    with pytest.raises(RuntimeError) as error:
        compiler()
    assert str(error.value) == (
        f"no C compiler found: {names} must be on PATH; install one, or set CC to its command"
    )
