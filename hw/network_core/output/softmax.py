"""SOFTMAX of the pixels of a map, with one serial multiplier."""

from amaranth.hdl import C, Module, Mux, Signal, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.network_core.interface import JobPort, MemoryWindow, ReadPort
from weft.hw.network_core.layouts import VectorAddress, add_addresses, add_vectors, within
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.latencies import MEMORY_READ
from weft.network_core.latencies import SOFTMAX_PRODUCT, SOFTMAX_STEPS, SOFTMAX_ZEROS

__all__ = ["HighProduct", "Reciprocal", "Softmax"]

_FRACTION = 12  # bits of an exponential that its term of the total has not
_RESULT_PLACE = 23  # of the lowest bit of a result in a product, if the total has these zeros
_RESULT_BITS = 9  # 256 is one more than the largest result


class HighProduct(wiring.Component):
    """``(a * b + 2^30) >> 31``: a bit of ``b`` a cycle, and ``a`` is added where it is 1.

    The sum begins with 2^30, which rounds the product: its weight is that of bit 0.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: takes ``b``.
    a : In, 32 bits, signed; stable from the cycle after ``start`` to ``done``
    b : In, 31 bits
    done : Out, 1 bit
        ``product`` is valid, `weft.network_core.latencies.SOFTMAX_PRODUCT` cycles after ``start``,
        until the next one.
    product : Out, 32 bits, signed
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "a": In(signed(32)), "b": In(31), "done": Out(1),
            "product": Out(signed(32)),
        })

    def elaborate(self, platform):
        m = Module()
        rest, left = Signal.like(self.b, reset_less=True), Signal(range(SOFTMAX_PRODUCT))
        m.d.comb += self.done.eq(left == 0)
        with m.If(~self.done):
            m.d.sync += [
                self.product.eq((self.product + Mux(rest[0], self.a, 0)) >> 1),
                rest.eq(rest >> 1), left.eq(left - 1),
            ]
        with m.If(self.start):
            m.d.sync += [
                self.product.eq(1 << 30), rest.eq(self.b), left.eq(SOFTMAX_PRODUCT - 1),
            ]
        return m


class Reciprocal(wiring.Component):
    """``2^62 / (total << zeros)``, by steps of Newton; the formula of gemmlowp, to the bit.

    A step has two products: the error of the estimate, and the correction of the estimate. No sum
    leaves its bits, because an estimate is at most 2^30 and an error at most 2^26; only twice the
    last estimate can be 2^31.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: takes ``total``.
    total : In, 32 bits; 2^19 or more
    zeros : Out, 4 bits
        Zeros before the first 1 of the total, from ``done`` to the next start.
    a, b : Out, 32 bits, signed, and 31 bits
        Of a `HighProduct`.
    multiply : Out, 1 bit
        Its ``start``.
    product : In, 32 bits, signed
    product_done : In, 1 bit
    done : Out, 1 bit
        Pulse, `weft.network_core.latencies.SOFTMAX_RECIPROCAL` cycles after ``start``: ``a`` is the
        reciprocal from the next cycle on, until the next start.
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "total": In(32), "zeros": Out(4),
            "a": Out(signed(32)), "b": Out(31), "multiply": Out(1),
            "product": In(signed(32)), "product_done": In(1), "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        total = Signal(32, reset_less=True)  # its first bit is 1 after NORMALISE
        estimate = Signal(32, reset_less=True)
        step, shifts = Signal(range(SOFTMAX_STEPS)), Signal(range(SOFTMAX_ZEROS))
        first, correct = step == 0, ~step[0]  # an even step corrects the estimate
        m.d.comb += self.b.eq(Mux(first, total[1:], estimate))
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [
                        total.eq(self.total), self.zeros.eq(0), step.eq(0),
                        shifts.eq(SOFTMAX_ZEROS - 1),
                    ]
                    m.next = "NORMALISE"
            with m.State("NORMALISE"):
                m.d.sync += [self.a.eq(-1010580540), shifts.eq(shifts - 1)]  # -32/17
                with m.If(~total[31]):
                    m.d.sync += [total.eq(total << 1), self.zeros.eq(self.zeros + 1)]
                with m.If(shifts == 0):  # the cycles do not depend on the values
                    m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += self.multiply.eq(1)
                m.next = "PRODUCT"
            with m.State("PRODUCT"):
                with m.If(self.product_done):
                    with m.If(correct):
                        m.d.sync += [
                            estimate.eq(
                                Mux(first, C(1515870810, 32), estimate)  # 48/17
                                + Mux(first, self.product, self.product << 2)
                            ),
                            self.a.eq(total[1:]),
                        ]
                    with m.Else():
                        m.d.sync += self.a.eq((1 << 29) - self.product)
                    m.d.sync += step.eq(step + 1)
                    m.next = "MULTIPLY"
                    with m.If(step == SOFTMAX_STEPS - 1):
                        m.next = "DOUBLE"
            with m.State("DOUBLE"):
                m.d.comb += self.done.eq(1)
                m.d.sync += self.a.eq(
                    Mux(estimate[30], (1 << 31) - 1, estimate << 1)
                )
                m.next = "IDLE"
        return m


class _Pass(enum.Enum, shape=2):
    """What a pass over the values of a pixel computes."""

    MAXIMUM = 0
    TOTAL = 1
    RESULTS = 2


class _Place(data.StructLayout):
    """A value of a pixel: its vectors in both maps, its byte in them, and what it is the last of.

    ``inside``: both vectors lie in the window.
    """

    def __init__(self, config):
        address = VectorAddress(config)
        super().__init__({
            "input": address, "output": address, "byte": ceil_log2(config.array.depth), "inside": 1,
            "first_value": 1, "last_byte": 1, "last_value": 1, "last_pixel": 1,
        })


class Softmax(wiring.Component):
    """Computes the jobs with the flag ``softmax``: one pixel after the other, in three passes.

    A pass reads each vector of the pixel, and takes a byte after the other: the first one finds the
    largest value, the second one adds the exponentials, the third one multiplies each of them by
    the reciprocal of their total, and stores it. So a map may be stored in its own place.

    An access beyond the window does not happen: the job waits until a reset.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
        It starts when the job before is done. Jobs without the flag have no effect.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    busy : Out, 1 bit
        A job runs.
    reads : Out, `weft.hw.network_core.interface.ReadPort`
        The first vector of the data is used.
    difference : Out, 8 bits
        A word of the ADD table.
    exponential : In, 32 bits
        That word, `weft.latencies.MEMORY_READ` cycles later.
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "job": In(JobPort(config)),
            "window": In(MemoryWindow.of(config)),
            "busy": Out(1),
            "reads": Out(ReadPort(config)),
            "difference": Out(8),
            "exponential": In(signed(32)),
            "write": Out(MemoryWrite(config)),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.product = product = HighProduct()
        m.submodules.reciprocal = reciprocal = Reciprocal()
        pass_, total = Signal(_Pass), Signal(32, reset_less=True)
        vector = Signal(8 * self.config.array.depth, reset_less=True)  # its next value first
        m.d.comb += [
            reciprocal.total.eq(total), reciprocal.product.eq(product.product),
            reciprocal.product_done.eq(product.done),
            product.a.eq(reciprocal.a),
            product.b.eq(self.exponential),
        ]
        with m.If(reciprocal.multiply):
            m.d.comb += [product.start.eq(1), product.b.eq(reciprocal.b)]
        begin, take = Signal(), Signal()  # pulses: a pass over a pixel begins; a value is taken
        place = self._places(m, begin, take, pass_ == _Pass.RESULTS)
        with m.If(take):
            m.d.sync += vector.eq(vector >> 8)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.job.start & self.job.fields.softmax):
                    m.d.sync += [self.busy.eq(1), pass_.eq(_Pass.MAXIMUM)]
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.comb += begin.eq(1)
                m.next = "CHECK"
            self._read(m, place, vector)
            self._value(m, take, pass_, total, place, vector, product)
            with m.State("TOTAL"):
                m.d.comb += reciprocal.start.eq(1)
                m.next = "RECIPROCAL"
            with m.State("RECIPROCAL"):
                with m.If(reciprocal.done):
                    m.d.sync += pass_.eq(_Pass.RESULTS)
                    m.next = "PASS"
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        self._store(
            m, take & (pass_ == _Pass.RESULTS), place,
            product.product >> (SOFTMAX_ZEROS - reciprocal.zeros)[: len(reciprocal.zeros)],
        )
        return m

    def _places(self, m, begin, take, stores):
        """The value that is taken next: its vectors in both maps, and what it is the last one of.

        ``stores``: the pass over a pixel is the last one.
        """
        job, banks = self.job.fields, self.config.banks
        place = Signal(_Place(self.config))
        left, rows_left, pixels_left = (
            Signal(16, name=f"{of}_left", reset_less=True) for of in ("values", "rows", "pixels")
        )
        next_pixel = Signal()
        m.d.comb += [
            place.first_value.eq(left == job.columns), place.last_value.eq(left == 1),
            place.last_byte.eq(place.byte == self.config.array.depth - 1),
            place.last_pixel.eq((pixels_left == 1) & (rows_left == 1)),
            next_pixel.eq(take & place.last_value & stores),
        ]
        inside = []
        for name in ("input", "output"):
            pixel = Signal(VectorAddress(self.config), name=f"{name}_pixel", reset_less=True)
            vector, step = place[name], Signal.like(pixel, name=f"{name}_step")
            m.d.comb += step.eq(Mux(
                pixels_left == 1, job[f"{name}_row_step"].as_value(),
                job[f"{name}_pixel_step"].as_value(),
            ))
            following = add_vectors(m, vector, 1, banks, f"{name}_following")
            after = add_addresses(m, pixel, step, banks, f"{name}_after")
            with m.If(take & place.last_byte):
                m.d.sync += vector.eq(following)
            with m.If(begin):
                m.d.sync += vector.eq(pixel)
            with m.If(next_pixel):
                m.d.sync += pixel.eq(after)
            with m.If(self.job.start):
                m.d.sync += pixel.eq(job[name])
            inside.append(within(self.config, vector, 1, self.window.base, self.window.limit))
        m.d.sync += place.inside.eq(inside[0] & inside[1])  # in the state READ
        with m.If(take):
            m.d.sync += [left.eq(left - 1), place.byte.eq(place.byte + 1)]
        with m.If(begin):
            m.d.sync += [left.eq(job.columns), place.byte.eq(0)]
        with m.If(next_pixel):
            m.d.sync += pixels_left.eq(pixels_left - 1)
            with m.If(pixels_left == 1):
                m.d.sync += [pixels_left.eq(job.out_width), rows_left.eq(rows_left - 1)]
        with m.If(self.job.start):
            m.d.sync += [pixels_left.eq(job.out_width), rows_left.eq(job.out_height)]
        return place

    def _read(self, m, place, vector):
        """The states in which a vector is read."""
        with m.State("CHECK"):  # whether both vectors lie in the window
            m.next = "READ"
        with m.State("READ"):
            m.d.comb += [
                self.reads.request.valid.eq(place.inside),
                self.reads.request.payload.eq(place.input),
                self.address_error.eq(~place.inside),
            ]
            with m.If(~place.inside):
                m.next = "FAILED"
            with m.Elif(self.reads.request.ready):
                m.next = "WAIT"
        with m.State("WAIT"):
            m.d.sync += vector.eq(self.reads.data[0])
            with m.If(self.reads.data_valid):
                m.next = "VALUE"
        with m.State("FAILED"):
            pass

    def _value(self, m, take, pass_, total, place, vector, product):
        """The states of a value, and of what follows it."""
        value, largest = vector[:8].as_signed(), Signal(signed(8), reset_less=True)

        def taken():
            m.d.comb += take.eq(1)
            m.next = "VALUE"
            with m.If(place.last_byte):
                m.next = "CHECK"
            with m.If(place.last_value):
                self._end_pass(m, pass_, place)

        with m.State("VALUE"):
            m.d.sync += self.difference.eq(largest - value)
            with m.If(pass_ == _Pass.MAXIMUM):
                with m.If(place.first_value | (value > largest)):
                    m.d.sync += largest.eq(value)
                taken()
            with m.Else():
                m.next = "LOOKUP_0"
        for n in range(MEMORY_READ):
            with m.State(f"LOOKUP_{n}"):
                m.next = f"LOOKUP_{n + 1}" if n < MEMORY_READ - 1 else "TERM"
        with m.State("TERM"):
            with m.If(pass_ == _Pass.TOTAL):
                term = self.exponential[_FRACTION:31] + self.exponential[_FRACTION - 1]
                m.d.sync += total.eq(Mux(place.first_value, 0, total) + term)
                taken()
            with m.Else():
                m.d.comb += product.start.eq(1)
                m.next = "PRODUCT"
        with m.State("PRODUCT"):
            with m.If(product.done):
                m.next = "STORE"
        with m.State("STORE"):
            taken()

    def _end_pass(self, m, pass_, place):
        """What follows the last value of a pass."""
        m.next = "PASS"
        with m.Switch(pass_):
            with m.Case(_Pass.MAXIMUM):
                m.d.sync += pass_.eq(_Pass.TOTAL)
            with m.Case(_Pass.TOTAL):
                m.next = "TOTAL"
            with m.Case(_Pass.RESULTS):
                m.d.sync += pass_.eq(_Pass.MAXIMUM)
                with m.If(place.last_pixel):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"

    def _store(self, m, store, place, scaled):
        """Store a result: a byte of its vector. ``scaled`` is valid in the cycle before."""
        # 256 times the result, and a bit that rounds it.
        doubled, rounded = Signal(_RESULT_BITS + 1, reset_less=True), Signal(_RESULT_BITS)
        depth = self.config.array.depth
        m.d.sync += doubled.eq(scaled[_RESULT_PLACE - 1 :])
        m.d.comb += [
            rounded.eq((doubled + 1) >> 1),
            self.write.valid.eq(store), self.write.address.eq(place.output),
            self.write.enable.eq(1 << place.byte),
            # Less 128: the first bit changes.
            self.write.data.eq(Mux(rounded[8], 0x7F, rounded[:8] ^ 0x80).replicate(depth)),
        ]
