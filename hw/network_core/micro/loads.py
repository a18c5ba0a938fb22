"""The one port of the memory of a micro core, and the load unit that copies words by it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import SinglePortBank
from weft.network_core.descriptors import LoadTarget

__all__ = ["LINE_GROUPS", "LoadUnit", "LoadWrite", "PortRequest", "SharedPort", "WeightBuffer"]


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


class WeightBuffer(wiring.Component):
    """Words of ``cols`` vectors of 4 bytes, in halves of two bytes of each column.

    Parameters
    ----------
    cols, words : int

    Attributes
    ----------
    enable : In, 1 bit for each column
    write_address : In
        ``Cat(half, word)``.
    write_data : In, 16 bits
        For all columns that are enabled.
    diagonal : In, 1 bit
        All columns are written: column n gets byte n of the word, in its place, and 0 elsewhere.
    read_address : In
    read_data : Out, 16 bits for each column
        A cycle later.
    """

    def __init__(self, *, cols, words):
        self.cols, self.words = cols, words
        bits = (words - 1).bit_length() + 1
        super().__init__({
            "enable": In(cols), "write_address": In(bits), "write_data": In(16),
            "diagonal": In(1), "read_address": In(bits),
            "read_data": Out(data.ArrayLayout(16, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        half = self.write_address[0]
        for column in range(self.cols):
            m.submodules[f"column_{column}"] = memory = Memory(
                shape=16, depth=2 * self.words, init=[],
                attrs={"ram_style": "block", "no_rw_check": 1},
            )
            write, read = memory.write_port(), memory.read_port()
            mine = half == column // 2
            kept = [~self.diagonal | (mine if byte == column % 2 else 0) for byte in range(2)]
            m.d.comb += [
                write.en.eq(self.enable[column]), write.addr.eq(self.write_address),
                write.data.eq(self.write_data & Cat(bit.replicate(8) for bit in kept)),
                read.addr.eq(self.read_address), self.read_data[column].eq(read.data),
            ]
        return m


LINE_GROUPS = 3  # vectors of a parameter line: bias, multiplier, shift


class LoadWrite(data.StructLayout):
    """A write of a buffer.

    ============ ==============================================================================
    ``valid``    a write, of the buffer with this bit (`weft.network_core.descriptors.LoadTarget`)
    ``word``     of the buffer
    ``group``    the vector of the word
    ``half``     the half of the vector that B takes; the other buffers take a vector with half 0
    ``diagonal`` of B
    ``data``     the vector, with half 0
    ``part``     the half for B
    ============ ==============================================================================
    """

    def __init__(self):
        super().__init__({
            "valid": len(LoadTarget), "word": 16, "group": 2, "half": 1, "diagonal": 1, "data": 32,
            "part": 16,
        })


class LoadUnit(wiring.Component):
    """Executes a `weft.network_core.descriptors.ListLoad` whose fields are right.

    Parameters
    ----------
    cols : int

    Attributes
    ----------
    value : In, 16 bits
        Of the fields: taken with ``set_flags`` (bits 31..0 of word 0), ``set_target`` (the higher
        half of word 1), ``set_word`` (of the buffer) and ``set_words`` (to load).
    set_flags, set_target, set_word, set_words : In, 1 bit each
    load : In, 1 bit
        Executes the load, until ``done``.
    done : Out, 1 bit
    read : Out, 1 bit
        Reads the next vector, until ``read_ready``; ``data`` has it in the cycle after that.
    read_ready : In, 1 bit
    data : In, 32 bits
    write : Out, `LoadWrite`
    """

    def __init__(self, *, cols):
        self.cols = cols
        super().__init__({
            "value": In(16), "set_flags": In(1), "set_target": In(1), "set_word": In(1),
            "set_words": In(1), "load": In(1), "done": Out(1, init=1), "read": Out(1),
            "read_ready": In(1), "data": In(32), "write": Out(LoadWrite()),
        })

    def elaborate(self, platform):
        m = Module()
        diagonal, fill, target = Signal(), Signal(), Signal(2)
        fill_value, word, words_left, group = Signal(8), Signal(16), Signal(16), Signal(2)
        for port, fields in (
            (self.set_flags, [diagonal.eq(self.value[8]), fill.eq(self.value[9])]),
            (self.set_target, [target.eq(self.value), fill_value.eq(self.value[8:])]),
            (self.set_word, [word.eq(self.value)]),
            (self.set_words, [words_left.eq(self.value), group.eq(0), self.done.eq(0)]),
        ):
            with m.If(port):
                m.d.sync += fields
        single, last_group, last_word = Signal(), Signal(), Signal()
        is_b, write = target == LoadTarget.B, self.write
        groups = Mux(is_b, self.cols, LINE_GROUPS)
        busy, half, final, more, high = Signal(), Signal(), Signal(), Signal(), Signal(16)
        m.d.comb += [
            single.eq(Mux(is_b, diagonal, target == LoadTarget.ADD_TABLE)),
            write.valid.eq(Mux(busy, 1 << target, 0)),
            write.word.eq(word), write.group.eq(group), write.half.eq(half),
            write.diagonal.eq(diagonal & is_b),
            write.data.eq(Mux(fill, fill_value.replicate(4), self.data)),
            write.part.eq(Mux(half, high, write.data[:16])),
            # The next vector is read while the buffer takes the second half of this one.
            more.eq(self.load & Mux(busy, half & ~final, ~self.done)),
            self.read.eq(more & ~fill),
        ]
        m.d.sync += [
            half.eq(busy & ~half), high.eq(write.data[16:]),
            # Used in the second cycle of a vector; they change after it.
            last_group.eq(single | (group == groups - 1)), last_word.eq(words_left == 1),
            final.eq((single | (group == groups - 1)) & (words_left == 1)),
        ]
        with m.If(~busy | half):
            m.d.sync += busy.eq(more & (fill | self.read_ready))
        with m.If(busy & half):
            m.d.sync += group.eq(group + 1)
            with m.If(last_group):
                m.d.sync += [
                    group.eq(0), word.eq(word + 1), words_left.eq(words_left - 1),
                    self.done.eq(last_word),
                ]
        return m
