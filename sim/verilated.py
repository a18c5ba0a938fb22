"""Compiles Verilog and a C++ harness to an executable simulation with Verilator."""

import concurrent.futures
import os
import subprocess
from pathlib import Path

from weft.files import write_bytes, write_text
from weft.sim import cache, tools

__all__ = ["WAIVERS", "executable", "prepare"]

# Verilator warnings that correct Verilog from Yosys causes: expressions whose widths follow
# Verilog's rules, and priority cases, which overlap by design.
WAIVERS = ["-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC", "-Wno-CASEOVERLAP", "-Wno-UNOPTFLAT"]
LIMIT = 3600  # seconds for a compilation
# Replaces functions of Verilator's header.
_SIGN_EXTENSION = Path(__file__).with_name("sign_extension.h")
# With -O2 a model compiles twice as long and does not run faster.
_OPTIMIZE = "-O1"
# Verilator's library, by feature, is the same for all models and compiled once.
_RUNTIME = {
    "": ["verilated.cpp", "verilated_threads.cpp"],
    "trace": ["verilated_vcd_c.cpp"],
    "vpi": ["verilated_vpi.cpp"],
}


def _key(*parts):
    """A digest of ``parts``, the tools and this code."""
    versions = tools.verilator().version, tools.compiler()
    code = Path(__file__).read_bytes(), _SIGN_EXTENSION.read_bytes()
    return cache.digest(*code, *versions, *parts)


def executable(
    kind: str, name: str, dependencies, verilog, harness: Path, *, top: str,
    prefix: str | None = None, file: str = "model", defines=(), control: str | None = None,
    trace: bool = False, vpi: bool = False, link=(), large: bool = False, say=lambda: None,
) -> Path:
    """An executable simulation of a Verilog text with a C++ harness, in the cache.

    Parameters
    ----------
    kind : str
        Folder of the cache.
    name : str
        Name of the model, for messages and file names.
    dependencies : sequence of str or bytes
        All that ``verilog()`` depends on.
    verilog : callable
        Returns the text; called if the executable is not in the cache.
    harness : Path
        A C++ file with ``main``; it may include the headers of its folder.
    top : str
        The module that is simulated.
    prefix : str, optional
        Name of the C++ class; ``V<top>`` if absent.
    file : str
        File name of the executable.
    defines : sequence of str
        Macros for the harness: ``NAME`` or ``NAME=value``.
    control : str, optional
        Text of a Verilator control file.
    trace : bool
        Whether the executable can write waveforms (VCD).
    vpi : bool
        Whether the executable has Verilator's VPI.
    link : sequence of str
        Linker options.
    large : bool
        Split the C++ into small pieces: without this, a netlist of gates takes hours to compile.
    say : callable
        Called before a compilation.

    Raises
    ------
    weft.sim.tools.ToolError
        If a tool is missing or too old, or does not compile the model.
    """
    prefix = prefix or f"V{top}"
    options = [top, prefix, file, *defines, str(control), str(trace), str(vpi), *link, str(large)]
    headers = [path.read_bytes() for path in sorted(harness.parent.glob("*.h"))]
    digest = _key(*options, harness.read_bytes(), *headers, *dependencies)

    def make(folder):
        say()
        compiler = _CppCompiler(name, trace=trace, vpi=vpi)
        write_text(folder / f"{top}.v", verilog())
        sources = [f"{top}.v"]
        if control is not None:
            write_text(folder / "control.vlt", control)
            sources.insert(0, "control.vlt")
        compiler.verilate(folder, sources, top, prefix, large)
        compiler.compile(folder, file, harness, defines, link, large)

    return cache.entry(kind, f"{name}-{digest}", make) / file


def prepare() -> None:
    """Compile Verilator's library and header for models and benches, into the cache."""
    compiler = _CppCompiler("library", trace=False, vpi=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for part in [pool.submit(compiler.header), pool.submit(compiler.runtime)]:
            part.result()


class _CppCompiler:
    """The tools, and the options for compiling models and Verilator's runtime."""

    def __init__(self, name, *, trace, vpi):
        self.name, self.trace, self.vpi = name, trace, vpi
        self.verilator, self.cxx = tools.verilator(), tools.compiler()
        self.include = _include(self.verilator)
        # No option of a model: the library and the header are the same for all of them.
        self.flags = [
            "-std=gnu++17", "-w", "-DVERILATOR=1", "-faligned-new",
            f"-I{self.include}", f"-I{self.include / 'vltstd'}",
        ]

    def verilate(self, folder, sources, top, prefix, large):
        """Convert the Verilog in the folder ``folder`` to C++."""
        pieces = ["--output-split", "5000", "--output-split-cfuncs", "500"] if large else []
        features = [*(["--trace-vcd"] if self.trace else []), *(["--vpi"] if self.vpi else [])]
        # No assertions: a simulator would check in each cycle that the cases of Yosys exclude each
        # other. No splitting otherwise: a single file compiles fastest.
        self._run(folder, [
            self.verilator.path, "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast",
            "--no-assert", *WAIVERS, "--top-module", top, "--prefix", prefix, "--Mdir", "obj",
            "--timescale", "1ns/1ps", *features, *(pieces or ["--output-split", "0"]), *sources,
        ], "Verilator")

    def compile(self, folder, file, harness, defines, link, large):
        """Compile the C++ and the harness to the executable ``file``; delete all other files."""
        generated = sorted(path.name for path in (folder / "obj").glob("*.cpp"))
        traced = ["-DTRACED"] if self.trace else []
        flags = [*self.flags, *traced, "-Iobj", *(f"-D{define}" for define in defines)]
        if large:
            units = [f"obj/{name}" for name in generated] + [str(harness)]
            objects = [f"obj/{n}.o" for n in range(len(units))]
            header = self.header()
            commands = [
                ["-include", header, *flags, _OPTIMIZE, "-c", unit, "-o", made]
                for unit, made in zip(units, objects, strict=True)
            ]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                list(pool.map(lambda command: self._cxx(folder, command), commands))
        else:
            # A single translation unit reads Verilator's headers only once. The files that end in
            # Slow run once, at the start: it takes longer to optimize them than to run them.
            cold = [name for name in generated if name.endswith("Slow.cpp")]
            hot = [name for name in generated if name not in cold]
            lines = [f'#include "{name}"' for name in [*hot, harness]]
            lines += ['#pragma GCC optimize("O0")', *(f'#include "{name}"' for name in cold)]
            write_text(folder / "obj" / "all.cc", "\n".join(lines) + "\n")
            objects = ["obj/all.o"]
            self._cxx(folder, [
                "-include", self.header(), *flags, _OPTIMIZE, "-c", "obj/all.cc", "-o", "obj/all.o",
            ])
        self._cxx(folder, ["-o", file, *objects, *self.runtime(), *link, "-pthread"])
        _delete(folder / "obj")

    def runtime(self):
        """The objects of Verilator's library, in the cache."""
        features = ["", *(["trace"] if self.trace else []), *(["vpi"] if self.vpi else [])]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return list(pool.map(self._object, features))

    def header(self):
        """The header of all models; its precompiled form lies beside it, in the cache."""
        def make(folder):
            write_bytes(folder / "all.h", _SIGN_EXTENSION.read_bytes())
            precompile = [_OPTIMIZE, "-x", "c++-header", "all.h", "-o", "all.h.gch"]
            self._cxx(folder, [*self.flags, *precompile])

        return cache.entry("runtime", f"header-{_key(*self.flags)}", make) / "all.h"

    def _object(self, feature):
        files = _RUNTIME[feature]

        def make(folder):
            text = "".join(f'#include "{file}"\n' for file in files)
            write_text(folder / "all.cc", text)
            self._cxx(folder, [*self.flags, _OPTIMIZE, "-c", "all.cc", "-o", "all.o"])

        name = "-".join([Path(files[0]).stem, _key(*self.flags, feature)])
        return cache.entry("runtime", name, make) / "all.o"

    def _cxx(self, folder, arguments):
        self._run(folder, [self.cxx.path, *arguments], "the C++ compiler")

    def _run(self, folder, command, tool):
        try:
            run = subprocess.run(
                [str(word) for word in command], cwd=folder, timeout=LIMIT,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise tools.ToolError(
                f"the compilation of the {self.name} model exceeded {LIMIT} s"
            ) from None
        if run.returncode:
            log = cache.folder() / f"{self.name}.log"
            write_text(log, run.stdout)
            raise tools.ToolError(
                f"{tool} did not compile the {self.name} model and ended with status"
                f" {run.returncode}: {run.stdout.strip().splitlines()[-1:]}; its output is in {log}"
            )


def _include(verilator):
    """The folder of Verilator's C++ sources."""
    run = subprocess.run(
        [verilator.path, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True,
    )
    return Path(run.stdout.strip()) / "include"


def _delete(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
