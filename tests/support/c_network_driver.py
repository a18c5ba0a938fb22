"""The C driver of a core for networks, compiled for this machine, on registers in Python."""

import ctypes
import functools

from c_network import shared_library

from weft.c_names import renamed
from weft.kit.documents import documents
from weft.kit.files.weft_driver import READ, WRITE
from weft.kit.network_driver import network_driver
from weft.kit.texts import text

__all__ = ["CNetworkDriver", "driver_files"]

GLUE = """
#include "weft.h"

uint32_t (*weft_test_read)(uint32_t);
void (*weft_test_write)(uint32_t, uint32_t);
size_t weft_test_core_size(void);
void weft_test_poll_limit(weft_core *core, uint32_t limit);
size_t weft_test_core_size(void) { return sizeof(weft_core); }
void weft_test_poll_limit(weft_core *core, uint32_t limit) { core->poll_limit = limit; }
"""


@functools.lru_cache
def driver_files(ip):
    """The files of the driver, with the header of the registers."""
    header = f"{ip.name}_regs.h"
    return network_driver(ip) | {header: documents(ip, "0")[header]}


class CNetworkDriver:
    """``call(name, ...)`` calls a function of the driver, or of C code of a network, on one core.

    Parameters
    ----------
    folder : Path
        For the sources and the library.
    ip : NetworkIp
    device : object
        With ``read(address)`` and ``write(address, value)``.
    files : dict of bytes
        C code of a network.
    changes : pairs of str
        Texts of the driver and their replacements: bugs.
    """

    def __init__(self, folder, ip, device, files=None, changes=()):
        sources = driver_files(ip) | (files or {})
        for old, new in changes:
            [name] = [name for name, data in sources.items() if old.encode() in data]
            sources = sources | {name: sources[name].replace(old.encode(), new.encode(), 1)}
        for name, data in sources.items():
            (folder / name).write_bytes(data)
        (folder / "glue.c").write_text(renamed(GLUE, ip.prefix))
        hooks = folder / "driver_hooks.h"
        hooks.write_text(renamed(text("driver_hooks.h"), ip.prefix))
        library = shared_library(
            folder, sorted(map(str, folder.glob("*.c"))), "-O1", "-include", hooks
        )
        self.library, self.device, self._prefix = ctypes.CDLL(str(library)), device, ip.prefix
        self._callbacks = READ(device.read), WRITE(device.write)
        for name, hook in zip(("read", "write"), self._callbacks, strict=True):
            place = ctypes.c_void_p.in_dll(self.library, f"{ip.prefix}_test_{name}")
            place.value = ctypes.cast(hook, ctypes.c_void_p).value
        size = self._function("test_core_size")
        size.restype = ctypes.c_size_t
        self.core = ctypes.create_string_buffer(size())

    def call(self, name, *arguments):
        """Call a function of the driver by its name without the prefix."""
        return self._function(name)(self.core, *arguments)

    def network(self, name, *arguments):
        """Call a function of the network's C code."""
        return getattr(self.library, name)(self.core, *arguments)

    def _function(self, name):
        return getattr(self.library, f"{self._prefix}_{name}")
