"""The one port of the memory, and who uses it in a cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.single_port_bank import SinglePortBank

__all__ = ["PortRequest", "SharedPort"]


class PortRequest(data.StructLayout):
    """``valid``, an address, and for a write ``enable`` with a bit a byte, and ``data``."""

    def __init__(self, *, write):
        super().__init__({
            "valid": 1, "address": 16, **({"enable": 4, "data": 32} if write else {}),
        })


class SharedPort(wiring.Component):
    """Single-port memory of vectors of 4 bytes; each cycle serves the first request of the list.

    The last three share the address of ``engine_write``. The host comes before them only after a
    cycle without a request of theirs, so it does not delay a request by more than a cycle.

    Parameters
    ----------
    words : int
    target : str
        As in the Config.

    Attributes
    ----------
    step : In, `PortRequest`
        The array: it cannot wait.
    store, added, host_write, host_read : In, `PortRequest`
        Only one request of the host at a time.
    load, engine_read : In, 1 bit each; engine_write : In, `PortRequest`
        In this order. The engine writes only while no tile is in progress. The names with
        ``_ready`` tell that a request is served.
    read_data : Out, 32 bits
        The vector that was read in the cycle before.
    """

    CLIENTS = {
        "step": False, "store": True, "added": False, "host_write": True, "host_read": False,
        "engine_write": True,
    }

    def __init__(self, *, words, target):
        self.words, self.target = words, target
        super().__init__({
            **{name: In(PortRequest(write=write)) for name, write in self.CLIENTS.items()},
            "load": In(1), "engine_read": In(1),
            **{
                f"{name}_ready": Out(1)
                for name in (*self.CLIENTS, "load", "engine_read") if name != "step"
            },
            "read_data": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = SinglePortBank(
            width=32, depth=self.words, target=self.target
        )
        array, host, quiet = Signal(), Signal(), Signal()
        writes, reads = self.host_write, self.host_read
        busy = self.load | self.engine_read | self.engine_write.valid
        m.d.sync += quiet.eq(~busy)
        m.d.comb += [
            array.eq(self.step.valid | self.store.valid | self.added.valid),
            host.eq((writes.valid | reads.valid) & quiet),
            self.store_ready.eq(self.store.valid & ~self.step.valid),
            self.added_ready.eq(self.added.valid & ~self.step.valid & ~self.store.valid),
            self.host_write_ready.eq(writes.valid & quiet & ~array),
            self.host_read_ready.eq(reads.valid & quiet & ~array),
            *(
                ready.eq(valid & ~array & ~host) for ready, valid in (
                    (self.load_ready, self.load), (self.engine_read_ready, self.engine_read),
                )
            ),
            self.engine_write_ready.eq(self.engine_write.valid & ~host),
            self.read_data.eq(bank.read_data),
        ]
        # What the memory does with the last address does not matter without a write.
        address = Mux(host, Mux(writes.valid, writes.address, reads.address),
                      self.engine_write.address)
        for name in ("added", "store", "step"):
            request = getattr(self, name)
            address = Mux(request.valid, request.address, address)
        m.d.comb += [
            bank.addr.eq(address),
            bank.write_data.eq(Mux(
                self.store.valid, self.store.data,
                Mux(host, writes.data, self.engine_write.data),
            )),
        ]
        for name, write in self.CLIENTS.items():
            if write:
                with m.If(getattr(self, f"{name}_ready")):
                    m.d.comb += bank.write_en.eq(getattr(self, name).enable)
        return m
