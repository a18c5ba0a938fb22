"""A head of the list reader: it finds and checks the next load or job."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.network_core.interface import MemoryWindow
from weft.hw.network_core.layouts import (
    JobFields,
    ListLoadFields,
    VectorAddress,
    add_vectors,
    beat_place,
    is_of_unit,
    later_sum,
    within,
)
from weft.hw.network_core.lists.descriptor_reader import DescriptorPart
from weft.network_core.config import ADD_TABLE_WORDS, MAX_SOFTMAX
from weft.network_core.descriptors import (
    BANK_BITS,
    DESCRIPTOR_BYTES,
    DESCRIPTOR_WORDS,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    places,
)

__all__ = ["ReaderHead", "field_faults"]

RESULT_BYTES = 1024  # of a list, at most
SIZES = {  # fields that must not be 0
    ListLoad: ("words",),
    ListJob: (
        "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
        "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
    ),
    ListLoop: ("times", "body"),
    ListEnd: (),
}
DIGITS = "pairs", "quads", "quad_pairs", "words"  # flags of values of 16 bits: at most one
BEATS = {ListLoad: ("source",), ListLoop: ("source_step",)}  # begin with a beat of the program
STEPS = {  # addresses that a turn of a loop changes, and the field of the loop with the step
    ListLoad: {"source": "source_step"},
    ListJob: {"input": "input_step", "output": "output_step", "add_input": "add_step"},
}
# The number of loads or jobs that a descriptor waits for, and what a turn of a loop adds to it.
WAITS = {ListLoad: ("jobs", "body_jobs"), ListJob: ("loads", "body_loads")}


def field_faults(config, kind, values, passed):
    """The faults of a descriptor: bits, of which all are 0 if its fields fit the core.

    Parameters
    ----------
    config : NetworkCoreConfig
    kind : type
        A class of `weft.network_core.descriptors`.
    values : dict of Value
        The fields, by name.
    passed : Value
        Number of the descriptors before it that a body of a loop may contain.
    """
    faults = [values[name] == 0 for name in SIZES[kind]]
    faults += [
        values[place.name][:BANK_BITS] >= config.banks
        for place in places(kind, config) if place.address
    ]
    if config.program_words:
        on_chip = values["on_chip"] if kind is ListLoad else Const(0)
        faults += [
            beat_place(config, _address(config, values[name])).any() & ~on_chip
            for name in BEATS.get(kind, ())
        ]
    if kind is ListLoad:
        target, end = values["target"], values["first_word"] + values["words"]
        faults += [
            target > max(LoadTarget),
            (target == LoadTarget.B) & (end > config.b_words),
            (target == LoadTarget.PARAMETERS) & (end > config.lines),
            (target == LoadTarget.ADD_TABLE) & (end > ADD_TABLE_WORDS),
        ]
        if config.int4:
            other = (target != LoadTarget.B) | values["diagonal"] | values["fill"]
            faults.append(values["packed"] & other)
    elif kind is ListJob:
        faults += [values["panel_rows"] > config.array.rows, values["add"] & values["sums"]]
        unit = is_of_unit(config, values)
        if config.has_units:
            faults.append(unit & (values["add"] | values["sums"]))
        if config.softmax:
            faults.append(values["softmax"] & (values["columns"] > MAX_SOFTMAX))
        if config.lstm:
            other = values["partial"] | values["softmax"] if config.softmax else values["partial"]
            faults.append(values["lstm"] & other)
        if config.int16:
            digits = [values[name] for name in DIGITS]
            faults += [
                sum(digits) > 1,
                reduce(or_, digits) & (values["add"] | values["sums"] | unit),
            ]
        if config.two_rows:
            odd = values["out_width"][0] | values["panel_rows"][0]
            same_bank = values["output_pixel_step"][:BANK_BITS] == 0
            faults.append(
                values["two_rows"] & (values["add"] | values["sums"] | unit | odd | same_bank)
            )
        if config.multiply_maps:
            faults.append(values["multiply"] & ~values["add"])
        if config.early:
            faults.append(values["early"] & (values["partial"] | unit))
    elif kind is ListLoop:
        faults.append(passed < values["body"])
    else:
        faults.append(values["result_bytes"] > RESULT_BYTES)
    return faults


def _address(config, value):
    """The `VectorAddress` in an address field."""
    layout = VectorAddress(config)
    return data.View(layout, Cat(*layout.from_list(value).values()))


class ReaderHead(wiring.Component):
    """Reads descriptors up to the next one of its kind, and holds it until it is taken.

    The descriptor is checked, and its addresses include the base and the steps of all turns of its
    loop. The fields of a descriptor of the other kind are not checked: the other head does that.

    A turn of a loop steps back over the loop and its body by one descriptor a cycle. A loop whose
    body contains a loop, or begins before the list, has the error FIELD.

    Parameters
    ----------
    config : NetworkCoreConfig
    kind : type
        `weft.network_core.descriptors.ListLoad` or `weft.network_core.descriptors.ListJob`.

    Attributes
    ----------
    begin : In, 1 bit
        Pulse, at most once after a reset: starts with the descriptor at ``list``.
    list : In, `VectorAddress`
        Includes its base.
    window : In, `MemoryWindow`
        What maps may use; of a head of loads, the base of their sources.
    fetch : Out, 1 bit
        Requests the descriptor at ``address``, until ``fetched``.
    address : Out, `VectorAddress`
    part : In, `DescriptorPart`
        The parts of that descriptor.
    fetched, opcode, error, following : In
        1 bit, and the outputs of a `DescriptorReader` that are valid with its ``done``.
    ready : Out, 1 bit
        A descriptor of this kind is in ``next``.
    take : In, 1 bit; only while ``ready``
        Pulse: ``next`` was taken.
    next : Out, `JobFields` or `ListLoadFields`
    counted : In, 16 bits
        Jobs that have ended, for a head of loads; complete loads, for a head of jobs.
    satisfied : Out, 1 bit
        ``counted`` was at least what ``next`` waits for, in the cycle before. Valid with ``ready``.
    end : Out, 1 bit
        The head has reached END.
    fault : Out, `weft.network_core.descriptors.ListError`
        Not NONE: the head has stopped at a descriptor with this error.
    interrupt, result, result_bytes : Out
        1 bit, `VectorAddress`, 16 bits: the fields of END, valid with ``end``. Only of a head of
        jobs, which also checks that the result lies within the limits.
    """

    COUNT_BITS = 16  # of a number of loads or jobs

    def __init__(self, config, kind):
        self.config = config
        self.kind = kind
        address = VectorAddress(config)
        super().__init__({
            "begin": In(1), "list": In(address), "window": In(MemoryWindow.of(config)),
            "fetch": Out(1), "address": Out(address),
            "part": In(DescriptorPart(config)),
            "fetched": In(1), "opcode": In(4), "error": In(ListError), "following": In(address),
            "ready": Out(1), "take": In(1),
            "next": Out(JobFields(config) if kind is ListJob else ListLoadFields(config)),
            "counted": In(self.COUNT_BITS), "satisfied": Out(1),
            "end": Out(1), "fault": Out(ListError),
            **({
                "interrupt": Out(1), "result": Out(address), "result_bytes": Out(16),
            } if kind is ListJob else {}),
        })

    def elaborate(self, platform):
        m = Module()
        fields = self._store(m)
        opcode, passed = Signal(4), Signal(self.COUNT_BITS)
        bad, any_bad = [], Signal()
        for kind, values in fields.items():
            faults = Cat(field_faults(self.config, kind, values, passed))
            # A register for each fault, and one that joins them: the states FAULTS and CHECK.
            found = Signal(len(faults), name=f"faults_of_{kind.__name__}")
            m.d.sync += found.eq(faults)
            bad.append((opcode == kind.OPCODE) & found.any())
        m.d.sync += any_bad.eq(Cat(bad).any())

        # Pulses: the loop repeats its body, or ends; a cycle later for the steps of its turns.
        repeat, leave, r_repeat, r_leave = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [r_repeat.eq(repeat), r_leave.eq(leave | self.begin)]
        self._next(m, fields, r_repeat, r_leave)
        self._wait(m, fields, r_repeat, r_leave)
        self._states(m, fields, opcode, passed, any_bad, repeat, leave)
        return m

    def _store(self, m):
        """The fields of the descriptor, by kind and name; the cycle after its last part."""
        words = [Signal(32, name=f"word_{n}", reset_less=True) for n in range(DESCRIPTOR_WORDS)]
        bits, part = Cat(words), self.part
        for index in range(len(bits) // len(part.data)):
            with m.If(part.valid & (part.index == index)):
                m.d.sync += bits.word_select(index, len(part.data)).eq(part.data)

        def field(place):
            value = words[place.word][place.low : place.low + place.bits]
            return value.as_signed() if place.signed else value

        return {
            kind: {place.name: field(place) for place in places(kind, self.config)}
            for kind in (self.kind, ListLoop, ListEnd)
        }

    def _next(self, m, fields, repeat, leave):
        """Set ``next``: add the base, and the steps of all turns, three cycles after the last part.
        """
        address, banks = VectorAddress(self.config), self.config.banks
        changed = {}
        for name, by in STEPS[self.kind].items():
            offset, step, first = (
                Signal(address, name=f"{name}_{of}") for of in ("offset", "step", "first")
            )
            self._assign(m, step, fields[ListLoop][by])
            self._assign(m, first, fields[self.kind][name])
            moved = later_sum(m, offset, step, banks, f"{name}_moved")
            with m.If(repeat):
                m.d.sync += offset.eq(moved)
            with m.Elif(leave):
                m.d.sync += [offset.bank.eq(0), offset.word.eq(self.window.base)]
            changed[name] = later_sum(m, first, offset, banks, f"{name}_changed")
        for name, value in fields[self.kind].items():
            if name in changed:
                m.d.comb += self.next[name].eq(changed[name])
            elif isinstance(self.next.shape()[name].shape, VectorAddress):
                self._assign(m, self.next[name], value)
            else:
                m.d.comb += self.next[name].eq(value)

    def _assign(self, m, address, value):
        """Assign an address field of a descriptor to a `VectorAddress`."""
        for name, part in VectorAddress(self.config).from_list(value).items():
            m.d.comb += address[name].eq(part)

    def _wait(self, m, fields, repeat, leave):
        """Set ``satisfied``. A count of more than 16 bits is never reached."""
        field, by = WAITS[self.kind]
        offset, total = (
            Signal(self.COUNT_BITS + 1, name=f"{field}_{of}") for of in ("offset", "total")
        )
        low, reachable = offset[:self.COUNT_BITS], ~(offset | total)[self.COUNT_BITS]
        m.d.sync += [
            total.eq(fields[self.kind][field] + low),
            self.satisfied.eq(reachable & (self.counted >= total[:self.COUNT_BITS])),
        ]
        with m.If(repeat):
            # At most one carry: no job or load starts in a turn whose offset has more than 16 bits.
            m.d.sync += offset.eq(offset + fields[ListLoop][by])
        with m.Elif(leave):
            m.d.sync += offset.eq(0)

    def _states(self, m, fields, opcode, passed, bad, repeat, leave):
        """The states of a descriptor, and the address of the next one."""
        config, loop, end = self.config, fields[ListLoop], fields[ListEnd]
        error = Signal(ListError)
        count, turn, last_turn = Signal(self.COUNT_BITS), Signal(self.COUNT_BITS), Signal()
        advance, vectors = Signal(), -(-DESCRIPTOR_BYTES // config.array.depth)
        back, after = (
            add_vectors(m, self.address, n, config.banks, name)
            for n, name in ((-vectors, "back"), (1, "after"))  # after: over the result
        )
        plan = self._plan(m, opcode, error, last_turn)
        m.d.sync += last_turn.eq(turn + 1 == loop["times"])
        with m.If(advance):
            m.d.sync += passed.eq(passed + ~passed.all())
        with m.If(leave):
            m.d.sync += passed.eq(0)

        with m.FSM():
            with m.State("START"):
                m.d.sync += self.address.eq(self.list)
                with m.If(self.begin):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += self.fetch.eq(1)
                m.d.sync += [opcode.eq(self.opcode), error.eq(self.error)]
                with m.If(self.fetched):
                    m.d.sync += self.address.eq(self.following)
                    m.next = "FAULTS"
            with m.State("FAULTS"):  # the faults of all fields are joined
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += [
                    advance.eq(plan.advance & ~bad), leave.eq(plan.leave & ~bad),
                    repeat.eq(plan.repeat & ~bad),
                ]
                m.next = "FETCH"
                with m.If(plan.hold):
                    m.next = "READY"
                with m.If(plan.repeat):
                    m.d.sync += [count.eq(loop["body"]), turn.eq(turn + 1)]
                    m.next = "BACK"
                with m.If(plan.leave):
                    m.d.sync += turn.eq(0)
                with m.If(plan.end):
                    m.next = "END"
                    if self.kind is ListJob:
                        depth = config.array.depth
                        size = (end["result_bytes"] + depth - 1) >> ceil_log2(depth)
                        m.d.sync += [self.address.eq(self.result), count.eq(size)]
                        m.next = "RESULT"
                with m.If(bad | plan.stop):
                    # The fields of a descriptor that was not read, or is none, have no meaning.
                    m.d.sync += self.fault.eq(Mux(plan.stop, error, ListError.FIELD))
                    m.next = "STOPPED"
            with m.State("READY"):
                m.d.comb += [self.ready.eq(1), advance.eq(self.take)]
                with m.If(self.take):
                    m.next = "FETCH"
            with m.State("BACK"):
                m.d.sync += [self.address.eq(back), count.eq(count - 1)]
                with m.If(count == 0):  # also over the descriptor of the loop
                    m.next = "FETCH"
            with m.State("END"):
                m.d.comb += self.end.eq(1)
            with m.State("STOPPED"):
                pass
            if self.kind is ListJob:
                self._result(m, end, after, count)

    def _plan(self, m, opcode, error, last_turn):
        """What happens with the descriptor, if its fields have no fault: one bit, registered."""
        plan = Signal(data.StructLayout({
            "stop": 1, "hold": 1, "repeat": 1, "leave": 1, "end": 1, "advance": 1,
        }))
        is_loop, right = opcode == ListLoop.OPCODE, error == ListError.NONE
        other = ListLoad if self.kind is ListJob else ListJob
        m.d.sync += [
            plan.stop.eq(~right), plan.hold.eq(right & (opcode == self.kind.OPCODE)),
            plan.advance.eq(right & ((opcode == other.OPCODE) | (is_loop & last_turn))),
            plan.repeat.eq(right & is_loop & ~last_turn),
            plan.leave.eq(right & is_loop & last_turn),
            plan.end.eq(right & (opcode == ListEnd.OPCODE)),
        ]
        return plan

    def _result(self, m, end, after, count):
        """The fields of END, and the state that checks the vectors of the result."""
        field = Signal(VectorAddress(self.config))
        self._assign(m, field, end["result"])
        m.d.comb += [
            self.interrupt.eq(end["interrupt"]), self.result_bytes.eq(end["result_bytes"]),
            self.result.bank.eq(field.bank), self.result.word.eq(field.word + self.window.base),
        ]
        window = self.window
        with m.State("RESULT"):
            m.d.sync += [self.address.eq(after), count.eq(count - 1)]
            with m.If(count == 0):
                m.next = "END"
            with m.Elif(~within(self.config, self.address, 1, window.base, window.limit)):
                m.d.sync += self.fault.eq(ListError.ADDRESS)
                m.next = "STOPPED"
