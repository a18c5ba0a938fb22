"""The C driver of a network core, compiled for this machine, on registers in Python."""

import ctypes

import numpy as np
from c_network import driver_files, hooked_library, write_sources
from network_registers import NetworkRegisterModel

from weft.kit.files.weft_driver import Library
from weft.models.c_code import network_core_c_files
from weft.models.c_code.generator import public_name
from weft.network_core.ip import NetworkIp

__all__ = ["CNetworkDriver", "LoadedChipNetwork"]

HOOKS = """
void weft_test_flush(const volatile void *pointer, uint32_t bytes);
void weft_test_invalidate(const volatile void *pointer, uint32_t bytes);
#define WEFT_FLUSH(pointer, bytes) weft_test_flush(pointer, bytes)
#define WEFT_INVALIDATE(pointer, bytes) weft_test_invalidate(pointer, bytes)
"""
# The processor sees a cache of the whole memory of the bus, which nothing else keeps coherent.
GLUE = """
#include <string.h>
#include "weft.h"

uint32_t (*weft_test_read)(uint32_t);
void (*weft_test_write)(uint32_t, uint32_t);
uintptr_t weft_test_memory, weft_test_bus;
size_t weft_test_core_size(void);
void weft_test_poll_limit(weft_core *core, uint32_t limit);
size_t weft_test_core_size(void) { return sizeof(weft_core); }
void weft_test_poll_limit(weft_core *core, uint32_t limit) { core->poll_limit = limit; }
static void *on_bus(const volatile void *pointer)
{
    return (void *)(weft_test_bus + (uintptr_t)pointer - weft_test_memory);
}
void weft_test_flush(const volatile void *pointer, uint32_t bytes)
{
    memcpy(on_bus(pointer), (const void *)(uintptr_t)pointer, bytes);
}
void weft_test_invalidate(const volatile void *pointer, uint32_t bytes)
{
    memcpy((void *)(uintptr_t)pointer, on_bus(pointer), bytes);
}
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

    Attributes
    ----------
    cache : array of uint8
        The memory of the bus as the processor sees it, if the core has a program memory.
    """

    def __init__(self, folder, ip, device, files=None, changes=()):
        sources = driver_files(ip) | (files or {})
        for old, new in changes:
            [name] = [name for name, data in sources.items() if old.encode() in data]
            sources = sources | {name: sources[name].replace(old.encode(), new.encode(), 1)}
        write_sources(folder, ip, sources)
        super().__init__(hooked_library(folder, ip, GLUE, HOOKS), device, ip.prefix)
        if ip.config.program_words:
            self.cache = device.bus_memory.copy()
            self.variable("test_memory").value = self.cache.ctypes.data
            self.variable("test_bus").value = device.bus_memory.ctypes.data

    def network(self, name, *arguments):
        """Call a function of the network's C code."""
        return getattr(self.lib, name)(self.core, *arguments)


class LoadedChipNetwork:
    """``network(x)`` runs the C code of a program; ``load`` loads it before."""

    def __init__(self, folder, program, device=None, prefix="weft", changes=()):
        self.program, self.name = program, public_name(program.name, prefix)
        self.device = device or NetworkRegisterModel(program.config)
        files = network_core_c_files(program, prefix)
        self.header, self.source = (files[name].decode() for name in ("net.h", "net.c"))
        ip = NetworkIp(config=program.config, bus="axi", prefix=prefix)
        self.driver = CNetworkDriver(folder, ip, self.device, files, changes)
        assert self.driver.call("init", None) == 0
        self.driver.call("test_poll_limit", 300)

    def load(self):
        return self.driver.network(f"{self.name}_load")

    def __call__(self, x, how="run"):
        """Return the error and the output."""
        tensor = self.program.tensors[self.program.outputs[0]]
        self.used = values, y = np.ascontiguousarray(x), np.zeros(tensor.shape, np.int8)
        error = self.driver.network(
            f"{self.name}_{how}", *(ctypes.c_void_p(one.ctypes.data) for one in (values, y))
        )
        return error, y

    def start(self, x):
        """Start an inference: the error, and the array that becomes its output."""
        return self(x, "start")

    def finish(self):
        return self.driver.network(f"{self.name}_finish")
