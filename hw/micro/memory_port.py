"""The one port of the memory, and who uses it in a cycle."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.single_port_bank import SinglePortBank

__all__ = ["MemoryPort", "PortRequest"]


class PortRequest(data.StructLayout):
    """``valid``, an address, and for a write ``enable`` with a bit a byte, and ``data``."""

    def __init__(self, *, write):
        super().__init__({
            "valid": 1, "address": 16, **({"enable": 4, "data": 32} if write else {}),
        })


class MemoryPort(wiring.Component):
    """Single-port memory of vectors of 4 bytes; each cycle serves the first request of the list.

    Parameters
    ----------
    words : int
    target : str
        As in the Config.

    Attributes
    ----------
    step : In, `PortRequest`
        The array: it cannot wait.
    store, added, load, engine_read, engine_write, host_write, host_read : In, `PortRequest`
        In this order. The names with ``_ready`` tell that a request is served.
    read_data : Out, 32 bits
        The vector that was read in the cycle before.
    """

    CLIENTS = {
        "step": False, "store": True, "added": False, "load": False, "engine_read": False,
        "engine_write": True, "host_write": True, "host_read": False,
    }

    def __init__(self, *, words, target):
        self.words, self.target = words, target
        super().__init__({
            **{name: In(PortRequest(write=write)) for name, write in self.CLIENTS.items()},
            **{f"{name}_ready": Out(1) for name in self.CLIENTS if name != "step"},
            "read_data": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = SinglePortBank(
            width=32, depth=self.words, target=self.target
        )
        before = self.step.valid
        for name in list(self.CLIENTS)[1:]:
            request = getattr(self, name)
            m.d.comb += getattr(self, f"{name}_ready").eq(request.valid & ~before)
            before = before | request.valid
        address, data = self.host_read.address, self.host_write.data
        for name in reversed(list(self.CLIENTS)[:-1]):
            request = getattr(self, name)
            address = Mux(request.valid, request.address, address)
        for name in ("engine_write", "store"):
            request = getattr(self, name)
            data = Mux(request.valid, request.data, data)
        m.d.comb += [
            bank.addr.eq(address), bank.write_data.eq(data),
            self.read_data.eq(bank.read_data),
        ]
        for name, write in self.CLIENTS.items():
            if write:
                with m.If(getattr(self, f"{name}_ready")):
                    m.d.comb += bank.write_en.eq(getattr(self, name).enable)
        return m
