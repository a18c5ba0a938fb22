"""The one port of the memory of a micro core, and the load unit that copies words by it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40 import LoadableCounter
from weft.hw.buffers.bank import SinglePortBank
from weft.hw.delay import pipeline
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
    store, added, step, host_write, host_read : In, `PortRequest`
        In this order. Only one request of the host at a time.
    step_free : Out, 1 bit
        A request of the array is served.
    load, engine_read : In, 1 bit each; engine_write : In, `PortRequest`
        In this order. The engine writes only while no tile is in progress. The names with
        ``_ready`` tell that a request is served.
    read_data : Out, 32 bits
        The vector that was read in the cycle before.
    """

    CLIENTS = {
        "store": True, "added": False, "step": False, "host_write": True, "host_read": False,
        "engine_write": True,
    }

    def __init__(self, *, words, target):
        self.words, self.target = words, target
        super().__init__({
            **{name: In(PortRequest(write=write)) for name, write in self.CLIENTS.items()},
            "load": In(1), "engine_read": In(1), "step_free": Out(1),
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
            self.store_ready.eq(self.store.valid),
            self.added_ready.eq(self.added.valid & ~self.store.valid),
            self.step_free.eq(~self.store.valid & ~self.added.valid),
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
        for name in ("step", "added", "store"):
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
    """Words of ``cols`` vectors of 4 bytes.

    Parameters
    ----------
    cols, words : int
    is_skewed : bool
        The upper half of each vector is read a cycle later.

    Attributes
    ----------
    enable : In, 1 bit for each column
    write_address : In
    write_data : In, 32 bits
        For all columns that are enabled.
    diagonal : In, 1 bit
        All columns are written: column n gets byte n of the vector, in its place, and 0 elsewhere.
    read_address : In
    read_data : Out, 32 bits for each column
        A cycle later; the upper half two cycles later, if skewed.
    """

    def __init__(self, *, cols, words, is_skewed):
        self.cols, self.words, self.is_skewed = cols, words, is_skewed
        bits = (words - 1).bit_length()
        super().__init__({
            "enable": In(cols), "write_address": In(bits), "write_data": In(32),
            "diagonal": In(1), "read_address": In(bits),
            "read_data": Out(data.ArrayLayout(32, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        others = self.write_data & ~self.diagonal.replicate(32)
        parts = [("", slice(0, 32), self.read_address)]
        if self.is_skewed:
            late = pipeline(m, self.read_address, 1, "late_address")
            parts = [("_low", slice(0, 16), self.read_address), ("_high", slice(16, 32), late)]
        for column in range(self.cols):
            word = Signal(32, name=f"word_{column}")
            m.d.comb += [
                word.eq(others),
                word.word_select(column, 8).eq(self.write_data.word_select(column, 8)),
            ]
            for name, bits, address in parts:
                m.submodules[f"column_{column}{name}"] = memory = Memory(
                    shape=bits.stop - bits.start, depth=self.words, init=[],
                    attrs={"ram_style": "block", "no_rw_check": 1},
                )
                write, read = memory.write_port(), memory.read_port()
                m.d.comb += [
                    write.en.eq(self.enable[column]), write.addr.eq(self.write_address),
                    write.data.eq(word[bits]), read.addr.eq(address),
                    self.read_data[column][bits].eq(read.data),
                ]
        return m


LINE_GROUPS = 3  # vectors of a parameter line: bias, multiplier, shift


class LoadWrite(data.StructLayout):
    """A write of a buffer.

    ============ ==============================================================================
    ``valid``    a write, of the buffer with this bit (`weft.network_core.descriptors.LoadTarget`)
    ``word``     of the buffer
    ``group``    the vector of the word
    ``diagonal`` of B
    ``data``     the vector
    ============ ==============================================================================
    """

    def __init__(self):
        super().__init__({
            "valid": len(LoadTarget), "word": 16, "group": 2, "diagonal": 1, "data": 32,
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
        m.submodules.word = word = LoadableCounter(16)
        m.submodules.words_left = words_left = LoadableCounter(16, down=True)
        fill_value, group = Signal(8), Signal(2)
        single, last_group, last_word = Signal(), Signal(), Signal()
        is_b, write = target == LoadTarget.B, self.write
        busy, more = Signal(), Signal()
        takes = busy & last_group  # the last vector of a word
        m.d.comb += [
            single.eq(Mux(is_b, diagonal, target == LoadTarget.ADD_TABLE)),
            write.valid.eq(Mux(busy, 1 << target, 0)),
            word.en.eq(self.set_word | takes), word.load.eq(self.set_word),
            word.start.eq(self.value), write.word.eq(word.value), write.group.eq(group),
            write.diagonal.eq(diagonal & is_b),
            write.data.eq(Mux(fill, fill_value.replicate(4), self.data)),
            # The next vector is read while the buffer takes this one.
            more.eq(self.load & ~self.done & ~(busy & last_group & last_word)),
            self.read.eq(more & ~fill),
        ]
        next_group = Signal.like(group)
        m.d.comb += [
            next_group.eq(group), words_left.en.eq(self.set_words | takes),
            words_left.load.eq(self.set_words), words_left.start.eq(self.value),
        ]
        m.d.sync += [
            busy.eq(more & (fill | self.read_ready)), group.eq(next_group),
            last_word.eq(Mux(takes, words_left.value == 2, words_left.value == 1)),
            last_group.eq(single | (next_group == Mux(is_b, self.cols, LINE_GROUPS) - 1)),
        ]
        with m.If(busy):
            m.d.comb += next_group.eq(Mux(last_group, 0, group + 1))
            with m.If(last_group):
                m.d.sync += self.done.eq(last_word)
        for port, fields in (
            (self.set_flags, [diagonal.eq(self.value[8]), fill.eq(self.value[9])]),
            (self.set_target, [target.eq(self.value), fill_value.eq(self.value[8:])]),
            (self.set_words, [group.eq(0), self.done.eq(0)]),
        ):
            with m.If(port):
                m.d.sync += fields
        return m
