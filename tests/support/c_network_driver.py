"""The C driver of a core for networks, compiled for this machine, on registers in Python."""

from c_network import driver_files, hooked_library, write_sources

from weft.kit.files.weft_driver import Library

__all__ = ["CNetworkDriver"]

GLUE = """
#include "weft.h"

uint32_t (*weft_test_read)(uint32_t);
void (*weft_test_write)(uint32_t, uint32_t);
uintptr_t weft_test_memory;
size_t weft_test_core_size(void);
void weft_test_poll_limit(weft_core *core, uint32_t limit);
size_t weft_test_core_size(void) { return sizeof(weft_core); }
void weft_test_poll_limit(weft_core *core, uint32_t limit) { core->poll_limit = limit; }
"""


class CNetworkDriver(Library):
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
        write_sources(folder, ip, sources)
        super().__init__(hooked_library(folder, ip, GLUE), device, ip.prefix)
        if ip.chip.program_words:
            self.variable("test_memory").value = device.bus_memory.ctypes.data

    def network(self, name, *arguments):
        """Call a function of the network's C code."""
        return getattr(self.lib, name)(self.core, *arguments)
