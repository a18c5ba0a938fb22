"""The driver compiles without warnings, links without a library, and compiles for 32 bits."""

import re
import subprocess

import pytest
from rejects import rejects
from tiers import quick

from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import header
from weft.kit.driver import driver
from weft.kit.files.weft_driver import compiler

FLAGS = ["-std=c99", "-ffreestanding", "-fno-builtin", "-Wall", "-Wextra", "-Wconversion",
         "-Wsign-conversion", "-pedantic", "-Werror"]
LINK = ["-nostdlib", "-shared", "-fPIC", "-Wl,-z,defs"]  # an undefined symbol is an error
CASES = {
    "axi": ("axi", {}), "stream": ("stream", {}), "dma": ("dma", {}),
    "bf16 axi": ("axi", {"dtype": "bf16", "c_words": 32}),
    "bf16 dma": ("dma", {"dtype": "bf16", "c_words": 32}),
}


def messages(folder, *flags):
    """The compiler's messages for all sources in a folder; empty if it accepts them."""
    done = subprocess.run(
        [*compiler(), *FLAGS, *flags, *sorted(path.name for path in folder.glob("*.c"))],
        cwd=folder, capture_output=True, text=True,
    )
    return done.stderr if done.returncode or done.stderr else ""


def supports(folder, flags):
    """Whether the compiler supports the flags."""
    (folder / "probe.c").write_text("int probe(int x);\nint probe(int x) { return x; }\n")
    return not messages(folder, *flags)


@pytest.fixture(params=CASES, scope="module")
def sources(request, tmp_path_factory):
    """A folder with the driver of a core."""
    bus, more = CASES[request.param]
    ip = Ip(config=Config(rows=2, cols=4, a_words=64, b_words=64, **more), bus=bus)
    folder = tmp_path_factory.mktemp("driver")
    for name, data in (driver(ip) | {f"{ip.name}_regs.h": header(ip)}).items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("level", quick(1, ["-O3", "-O0"]))
def test_needs_no_library_function(sources, level):
    assert messages(sources, *LINK, level, "-o", "driver.so") == ""


def test_has_no_zero_initializer(sources):
    """Clang calls memset for an initializer ``{0}``; GCC for x86 does not."""
    for path in sources.glob("*.c"):
        assert re.findall(r"= *{ *0 *}", path.read_text()) == [], path.name


def test_detects_an_undefined_symbol(tmp_path):
    (tmp_path / "caller.c").write_text("int missing(void);\nint caller(void);\n"
                                       "int caller(void) { return missing(); }\n")
    assert "missing" in messages(tmp_path, *LINK, "-o", "caller.so")


def test_is_clean_on_32_bits(sources, tmp_path):
    flags = ["-m32", "-fsyntax-only"]
    if not supports(tmp_path, flags):
        pytest.skip("this compiler has no 32-bit target")
    assert messages(sources, *flags) == ""


@pytest.mark.parametrize("cc, installed, command", [
    ("riscv-cc -O2", ["riscv-cc", "cc", "gcc"], ["riscv-cc", "-O2"]),
    ("", ["cc", "gcc"], ["cc"]),
    ("", ["gcc"], ["gcc"]),
])
def test_finds_the_compiler(monkeypatch, tmp_path, cc, installed, command):
    for name in installed:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", cc)
    assert compiler() == command


@pytest.mark.parametrize("cc, names", [("riscv-cc", "riscv-cc"), ("", "cc or gcc")])
def test_reports_a_missing_compiler(monkeypatch, tmp_path, cc, names):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", cc)
    with rejects(RuntimeError, (
        f"no C compiler found: {names} must be on PATH; install one, or set CC to its command"
    )):
        compiler()
