"""The C code of a network, compiled for this machine with a kit's driver, on a model of a core."""

import ctypes
import functools
import subprocess
from pathlib import Path

import numpy as np
from register_model import RegisterModel

from weft.ip import identifier, renamed
from weft.kit.documents import header
from weft.kit.driver import driver
from weft.kit.files.weft_driver import Driver, compiler
from weft.kit.folder import text

__all__ = [
    "LoadedNetwork", "driver_files", "hooked_library", "shared_library", "write_sources",
]

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wsign-conversion",
         "-pedantic"]
ARENA = 1 << 20  # bytes of memory for the driver and the test, inside the library
GLUE = f"""
extern unsigned char weft_test_arena[{ARENA}];
unsigned char weft_test_arena[{ARENA}] __attribute__((aligned(4096)));
"""


@functools.lru_cache
def driver_files(ip):
    """The files of the driver, with the header of the registers."""
    return driver(ip) | {f"{ip.name}_regs.h": header(ip)}


def write_sources(folder, ip, files):
    """Write the driver and the network's C files to a folder; return the C sources."""
    for name, data in (driver_files(ip) | files).items():
        (folder / name).write_bytes(data)
    return sorted(map(str, folder.glob("*.c")))


def hooked_library(folder, ip, glue, more_hooks=""):
    """Compile the sources in a folder and C code ``glue``, with the hooks of `Library`."""
    hooks = folder / "driver_hooks.h"
    hooks.write_text(renamed(text("driver_hooks.h") + more_hooks, ip.prefix))
    (folder / "glue.c").write_text(renamed(glue, ip.prefix))
    return shared_library(folder, sorted(folder.glob("*.c")), "-O1", "-include", hooks)


def shared_library(folder, sources, *flags):
    """Compile sources to a shared library; return its path. A warning is an error."""
    library = folder / "network.so"
    done = subprocess.run(
        [*compiler(), *FLAGS, *flags, "-shared", "-fPIC", *sources, f"-I{folder}", "-o", library],
        capture_output=True, text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return library


class LoadedNetwork:
    """``network(x)`` runs the function of a network's C code.

    Bus dma: the memory of the core is the compiled library, with all static arrays in it.

    Parameters
    ----------
    folder : Path
        For the sources and the library.
    ip : Ip
    name : str
        Name of the network.
    files : dict of bytes
        From `weft.models.c_code.c_files`.
    """

    def __init__(self, folder, ip, name, files):
        write_sources(folder, ip, files)
        library = hooked_library(folder, ip, text("driver_glue.c") + GLUE)
        device = RegisterModel(ip)
        loaded = ctypes.CDLL(str(library))
        arena = ctypes.addressof((ctypes.c_uint8 * ARENA).in_dll(loaded, f"{ip.prefix}_test_arena"))
        start, end = _extent(library)
        device.memory = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
        self.driver = _ArenaDriver(library, device, ip.prefix, arena - start)
        assert self.driver.call("weft_init", None) == 0
        self._run = getattr(loaded, f"{identifier(name)}_run")

    def __call__(self, x, size):
        """Return the error and the ``size`` values of the output."""
        values, output = self.driver.put(x), self.driver.alloc((size,), np.int8)
        error = self._run(
            self.driver.core, ctypes.c_void_p(values.ctypes.data),
            ctypes.c_void_p(output.ctypes.data),
        )
        return error, output.copy()


class _ArenaDriver(Driver):
    """Allocates memory in the arena of the library."""

    def __init__(self, library, device, prefix, start):
        self._start = start
        super().__init__(library, device, prefix)

    def alloc(self, shape, dtype, skew=0):
        self.used = max(self.used, self._start)
        return super().alloc(shape, dtype, skew)


def _extent(library):
    """Return the first address of a loaded library, and the end of its last array."""
    path, regions = str(Path(library).resolve()), []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        start, end = (int(part, 16) for part in fields[0].split("-"))
        name = fields[5] if len(fields) > 5 else ""
        if name == path or regions and not name and start == regions[-1][1]:
            regions.append((start, end))
    return regions[0][0], regions[-1][1]
