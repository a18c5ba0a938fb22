"""SOFTMAX of the pixels of a map; the scaler of a lane multiplies."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import ReadPort, ScalePort, job_ports
from weft.hw.network_core.layouts import VectorAddress, add_addresses, add_vectors, within
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.latencies import MEMORY_READ
from weft.network_core.config import MAX_SOFTMAX
from weft.network_core.latencies import SOFTMAX_STEPS, SOFTMAX_ZEROS, scale

__all__ = ["Reciprocal", "Softmax"]

_FRACTION = 12  # bits of an exponential that its term of the total has not
_RESULT_BITS = 9  # 256 is one more than the largest result


class Reciprocal(wiring.Component):
    """``2^62 / (total << zeros)``, by steps of Newton; the formula of gemmlowp, to the bit.

    ``zeros`` are those before the first 1 of the total, as a number of 32 bits. A product is
    ``(a * b + 2^30) >> 31``. A step of Newton has two: the error of the estimate, and its
    correction. No sum leaves its bits, because an estimate is at most 2^30 and an error at most
    2^26; only twice the last estimate can be 2^31.

    Attributes
    ----------
    clear : In, 1 bit
        Pulse: the total is 0.
    add : In, 1 bit
        Pulse: ``term + carry`` is added to the total.
    term : In, 31 bits
    carry : In, 1 bit
    start : In, 1 bit
        Pulse: the total is complete: 2^19 or more, and below 2^31. Only while ``ready`` is 1.
    ready : Out, 1 bit
        0 from the cycle after ``start`` on, for `weft.network_core.latencies.softmax_reciprocal`
        cycles. Then ``a`` is the reciprocal until the next start.
    multiply : Out, 1 bit
        Pulse: ``a`` and ``b`` are multiplied. They stay until ``product_done``.
    a, b : Out, 32 bits, signed, and 31 bits
    product_done : In, 1 bit
        Pulse: ``product`` is valid.
    product : In, 32 bits, signed
    shift : Out, 8 bits, signed
        ``zeros - 35``, while ``ready`` is 1: what shifts the product of the reciprocal and an
        exponential to 256 times their quotient. Not if the quotient vanishes.
    vanishes : Out, 1 bit
        The quotient is 0, because a product of 31 bits would be shifted by more than 31 bits.
    """

    def __init__(self):
        super().__init__({
            "clear": In(1), "add": In(1), "term": In(31), "carry": In(1), "start": In(1),
            "ready": Out(1), "multiply": Out(1), "a": Out(signed(32)), "b": Out(31),
            "product_done": In(1), "product": In(signed(32)), "shift": Out(signed(8)),
            "vanishes": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        total = Signal(31, reset_less=True)  # half of the shifted one, after NORMALISE
        estimate, error = (
            Signal(shape, name=name, reset_less=True)
            for name, shape in (("estimate", 31), ("error", signed(32)))
        )
        step, shifts = Signal(range(SOFTMAX_STEPS + 1)), Signal(range(SOFTMAX_ZEROS))
        first, odd, above = step == 0, step[0], Signal(4)  # ``shift + 32``
        m.d.comb += [
            # An odd step has the error of the estimate, an even one corrects the estimate.
            self.a.eq(Mux(odd, estimate, error)), self.b.eq(Mux(odd | first, total, estimate)),
            self.shift.eq(Cat(above, C(0b1110, 4))),
            self.vanishes.eq((above == 0) | above[1:].all()),
        ]
        with m.If(self.add):  # one carry chain adds both
            m.d.sync += total.eq((Cat(1, total) + Cat(self.carry, self.term))[1:])
        with m.If(self.clear):
            m.d.sync += total.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.ready.eq(1)
                with m.If(self.start):
                    m.d.sync += [
                        error.eq(-1010580540), estimate.eq(1515870810),  # -32/17, 48/17
                        step.eq(0), above.eq(-2), shifts.eq(SOFTMAX_ZEROS - 1),
                    ]
                    m.next = "NORMALISE"
            with m.State("NORMALISE"):
                m.d.sync += shifts.eq(shifts - 1)
                with m.If(~total[30]):
                    m.d.sync += [total.eq(total << 1), above.eq(above + 1)]
                with m.If(shifts == 0):  # the cycles do not depend on the values
                    m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += self.multiply.eq(1)
                m.next = "PRODUCT"
            with m.State("PRODUCT"):
                with m.If(self.product_done):
                    m.d.sync += step.eq(step + 1)
                    with m.If(odd):
                        m.d.sync += error.eq((1 << 29) - self.product)
                    with m.Else():
                        m.d.sync += estimate.eq(
                            estimate + Mux(first, self.product, self.product << 2)
                        )
                    m.next = "MULTIPLY"
                    with m.If(step == SOFTMAX_STEPS - 1):
                        m.next = "DOUBLE"
            with m.State("DOUBLE"):  # the step is odd
                m.d.sync += estimate.eq(Mux(estimate[30], (1 << 31) - 1, estimate << 1))
                m.next = "IDLE"
        return m


class _Pass(enum.Enum, shape=2):
    """What a pass over the values of a pixel computes."""

    MAXIMUM = 0
    TOTAL = 1
    RESULTS = 2


class Softmax(wiring.Component):
    """Computes the jobs with the flag ``softmax``: one pixel after the other, in three passes.

    A pass reads each vector of the pixel, and takes a byte after the other: the first one finds the
    largest value, the second one adds the exponentials, the third one multiplies each of them by
    the reciprocal of their total, and stores it. So a map may be stored in its own place.

    A scaler multiplies: ``(a * b + 2^30) >> 31`` is what it computes of a sum and a multiplier, and
    its rounding shift makes a result of the last product.

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
    scale : Out, `weft.hw.network_core.interface.ScalePort`
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window.
    """

    def __init__(self, config):
        self.config = config
        self.cycles = config.array.scale_cycles
        super().__init__({
            **job_ports(config),
            "busy": Out(1),
            "reads": Out(ReadPort(config)),
            "difference": Out(8),
            "exponential": In(signed(32)),
            "scale": Out(ScalePort()),
            "write": Out(MemoryWrite(config)),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reciprocal = reciprocal = Reciprocal()
        pass_, vector = Signal(_Pass), Signal(8 * self.config.array.depth, reset_less=True)
        # Pulses: a pass over a pixel begins, a value is taken, a map moves on.
        begin, take, next_vector = (Signal(name=name) for name in ("begin", "take", "next_vector"))
        next_pixel = {name: Signal(name=f"next_pixel_{name}") for name in ("input", "output")}
        inside, last_pixel = self._addresses(m, begin, next_vector, next_pixel)
        last_byte, last_value = self._values(m, begin, take)
        slot = self._slot(m, take, pass_)
        empty, last = self._results(m, take, pass_, vector, reciprocal)
        ended = Signal()  # the last value of the pixel is taken
        # The end of a job starts the next one, far away in the same cycle. So it has a register.
        m.d.sync += self.done.eq(last & ended & last_pixel)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.job.start & self.job.fields.softmax):
                    m.d.sync += [self.busy.eq(1), pass_.eq(_Pass.MAXIMUM)]
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.comb += begin.eq(1)
                m.next = "CHECK"
                with m.If(pass_ == _Pass.RESULTS):  # the reciprocal takes longer
                    m.next = "NEXT_INPUT"
            with m.State("NEXT_INPUT"):
                m.d.comb += next_pixel["input"].eq(1)
                m.next = "NEXT_OUTPUT"
            with m.State("NEXT_OUTPUT"):
                m.d.comb += next_pixel["output"].eq(1)
                m.next = "CHECK"
            self._read(m, inside, vector, next_vector)
            with m.State("VALUE"):
                with m.If(reciprocal.ready & slot):
                    m.d.comb += take.eq(1)
                    m.d.sync += ended.eq(last_value)
                    with m.If(last_byte | last_value):
                        m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(empty):
                    m.d.comb += next_vector.eq(1)
                    m.next = "CHECK"
                    with m.If(ended):
                        m.next = "PASS"
                        self._end_pass(m, pass_, reciprocal, last_pixel)
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        m.d.comb += reciprocal.clear.eq(begin & (pass_ == _Pass.MAXIMUM))
        return m

    def _addresses(self, m, begin, next_vector, next_pixel):
        """Whether a vector lay in the window a cycle ago; whether the pixel is the last one.

        Both maps share each adder: what moves on is the first address of two, and the other one is
        the first one then.
        """
        job, banks = self.job.fields, self.config.banks
        (vector, other), (pixel, other_pixel) = (
            [Signal(VectorAddress(self.config), name=name, reset_less=True) for name in names]
            for names in (("vector", "other_vector"), ("pixel", "other_pixel"))
        )
        rows_left, pixels_left = (
            Signal(16, name=f"{of}_left", reset_less=True) for of in ("rows", "pixels")
        )
        row_last = pixels_left == 1
        step, inside = Signal.like(pixel, name="step", reset_less=True), Signal()
        # The output moves on in the cycle after the input.
        m.d.sync += step.eq(Mux(row_last, job.input_row_step, job.input_pixel_step))
        with m.If(next_pixel["input"]):
            m.d.sync += step.eq(Mux(row_last, job.output_row_step, job.output_pixel_step))
        with m.If(next_pixel["output"]):
            m.d.sync += pixels_left.eq(pixels_left - 1)
            with m.If(row_last):
                m.d.sync += [pixels_left.eq(job.out_width), rows_left.eq(rows_left - 1)]
        after_pixel = add_addresses(m, pixel, step, banks, "after_pixel")
        after_vector = add_vectors(m, vector, 1, banks, "after_vector")
        with m.If(next_pixel["input"] | next_pixel["output"]):
            m.d.sync += [pixel.eq(other_pixel), other_pixel.eq(after_pixel)]
        with m.If(self.job.start):
            m.d.sync += [
                pixel.eq(job.input), other_pixel.eq(job.output),
                pixels_left.eq(job.out_width), rows_left.eq(job.out_height),
            ]
        with m.If(next_vector):
            m.d.sync += [vector.eq(other), other.eq(after_vector)]
        with m.If(begin):
            m.d.sync += [vector.eq(pixel), other.eq(other_pixel)]
        m.d.sync += inside.eq(within(self.config, vector, 1, self.window.base, self.window.limit))
        m.d.comb += [
            self.reads.request.payload.eq(vector),
            self.write.address.eq(pipeline(m, vector, 1, "write_address")),
        ]
        return inside, rows_left == 0

    def _values(self, m, begin, take):
        """Whether the value that is taken is the last one of its vector, and of its pixel."""
        left = Signal(range(MAX_SOFTMAX + 1), reset_less=True)
        byte = Signal(ceil_log2(self.config.array.depth), reset_less=True)
        with m.If(take):
            m.d.sync += [left.eq(left - 1), byte.eq(byte + 1)]
        with m.If(begin):
            m.d.sync += [left.eq(self.job.fields.columns), byte.eq(0)]
        return byte == self.config.array.depth - 1, left == 1

    def _slot(self, m, take, pass_):
        """Whether the scaler is ready for a value."""
        if self.cycles == 1:
            return C(1)
        wait = Signal(range(self.cycles))
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.If(take & (pass_ == _Pass.RESULTS)):
            m.d.sync += wait.eq(self.cycles - 1)
        return wait == 0

    def _read(self, m, inside, vector, next_vector):
        """The states in which a vector is read."""
        with m.State("CHECK"):
            m.next = "READ"
        with m.State("READ"):
            m.d.comb += [
                self.reads.request.valid.eq(inside), self.address_error.eq(~inside),
            ]
            with m.If(~inside):
                m.next = "FAILED"
            with m.Elif(self.reads.request.ready):
                m.d.comb += next_vector.eq(1)
                m.next = "WAIT"
        with m.State("WAIT"):  # the place of the results is checked
            m.d.sync += vector.eq(self.reads.data[0])
            with m.If(self.reads.data_valid):
                m.d.comb += self.address_error.eq(~inside)
                m.next = "FAILED"
                with m.If(inside):
                    m.next = "VALUE"
        with m.State("FAILED"):
            pass

    def _results(self, m, take, pass_, vector, reciprocal):
        """What follows a value that is taken; whether nothing follows any more, or only a write."""
        largest, difference = Signal(signed(8), reset_less=True), Signal(signed(9))
        looked_up, scaled = Signal(1 + MEMORY_READ), Signal(scale(self.config.array))
        found, done = looked_up[-1], scaled[-1]
        m.d.comb += [
            difference.eq(largest - vector[:8].as_signed()),
            reciprocal.add.eq(found & (pass_ == _Pass.TOTAL)),
            reciprocal.term.eq(self.exponential[_FRACTION:31]),
            reciprocal.carry.eq(self.exponential[_FRACTION - 1]),
            self.scale.start.eq(reciprocal.multiply | (found & (pass_ == _Pass.RESULTS))),
            self.scale.acc.eq(reciprocal.a), self.scale.multiplier.eq(reciprocal.b),
            reciprocal.product_done.eq(done), reciprocal.product.eq(self.scale.y),
        ]
        next_looked_up = Cat(take & (pass_ != _Pass.MAXIMUM), looked_up)[: len(looked_up)]
        next_scaled = Cat(self.scale.start, scaled)[: len(scaled)]
        # Nothing is in flight, except a result that comes in this cycle. It is a register, because
        # the pass that follows starts from it.
        drained = Signal(init=1)
        m.d.sync += [
            looked_up.eq(next_looked_up), scaled.eq(next_scaled),
            drained.eq(~next_looked_up.any() & ~next_scaled[:-1].any()),
        ]
        with m.If(take):
            m.d.sync += [vector.eq(vector >> 8), self.difference.eq(difference)]
            with m.If((pass_ == _Pass.MAXIMUM) & difference[-1]):
                m.d.sync += largest.eq(vector[:8])
        with m.If(reciprocal.clear):
            m.d.sync += largest.eq(-128)
        with m.If(reciprocal.ready):
            m.d.comb += [
                self.scale.multiplier.eq(self.exponential[:31]),
                self.scale.shift.eq(reciprocal.shift),
            ]
        store = done & reciprocal.ready
        self._store(m, store, reciprocal.clear, reciprocal.vanishes)
        return drained & ~done, drained & store

    def _store(self, m, store, restart, vanishes):
        """Store 256 times a quotient, less 128: a byte of its vector.

        The write has a register: its way to the memory is long.
        """
        depth, result = self.config.array.depth, self.scale.y[:_RESULT_BITS]
        valid, place = Signal(), Signal(depth, init=1, reset_less=True)
        # Less 128: the first bit changes.
        byte = Mux(vanishes, 0x80, Mux(result[8], 0x7F, result[:8] ^ 0x80))[:8]
        m.d.sync += valid.eq(store)
        with m.If(store):
            m.d.sync += place.eq(place.rotate_left(1))
        with m.If(restart):
            m.d.sync += place.eq(1)
        m.d.comb += [
            self.write.valid.eq(valid),
            self.write.enable.eq(pipeline(m, place, 1, "write_enable")),
            self.write.data.eq(pipeline(m, byte, 1, "write_byte").replicate(depth)),
        ]

    def _end_pass(self, m, pass_, reciprocal, last_pixel):
        """What follows the last value of a pass."""
        with m.Switch(pass_):
            with m.Case(_Pass.MAXIMUM):
                m.d.sync += pass_.eq(_Pass.TOTAL)
            with m.Case(_Pass.TOTAL):
                m.d.comb += reciprocal.start.eq(1)
                m.d.sync += pass_.eq(_Pass.RESULTS)
            with m.Case(_Pass.RESULTS):
                m.d.sync += pass_.eq(_Pass.MAXIMUM)
                with m.If(last_pixel):
                    m.next = "IDLE"
