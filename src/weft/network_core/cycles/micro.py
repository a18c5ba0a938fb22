"""The cycle model of lists for a core that a microprogram controls: it executes the program."""

import struct
import types
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from weft.network_core import latencies
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListError,
    ListJob,
    LoadTarget,
    NetworkState,
    join,
    places,
)
from weft.network_core.microcode import Condition, In, Kind, Op, Out, Strobe, assemble
from weft.network_core.microcode import instructions as micro

__all__ = ["EngineTimes", "ListPrediction", "UnitTimes", "predict_micro"]

@dataclass(frozen=True)
class ListPrediction:
    """The cycles of a list, counted from its START.

    Attributes
    ----------
    jobs : tuple of (int, int)
        For each job, the cycle of its start and the cycle of its last store, as in the log. With
        the option ``early``, the start is the one of its output.
    started : tuple of int
        For each job, the cycle in which its array steps start.
    computed : tuple of int
        For each job, the cycle of its last array step.
    loads : tuple of (int, int)
        For each load, the cycle in which it is taken, and the cycle of its last write.
    cycles : int
        Cycles of the list.
    """

    jobs: tuple[tuple[int, int], ...]
    started: tuple[int, ...]
    computed: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]
    cycles: int


_JOB_FLAGS = {field.name: 1 << field.low for field in places(ListJob) if field.word == 0}
_ADD_STORES = 1 << 8  # of the instruction ADD
_HEADS = micro.REGISTERS - micro.HEAD_REGISTERS  # the registers of the selected head, ...
_OTHER_HEAD = _HEADS + micro.HEAD_REGISTERS // 2  # and those of the other one
_VECTOR_BYTES = 4  # the only depth of such a core


class UnitTimes:
    """The load unit, the step unit and the output unit, tile by tile.

    A method tells in which cycle its instruction, which comes in cycle ``now``, is complete.

    A tile may end a cycle after the request of the last column but one of a whole tile before, if
    the core `ends_early`. In a job with ADD or sums, and behind a smaller tile, it may end a cycle
    after the request of the last column. With ADD the vector of the added map for the tile before
    must have been read, too. This read waits until the last byte of the vector before that one was
    taken. A step waits for a cycle in which the memory stores no vector and reads no added one.

    Parameters
    ----------
    config : NetworkCoreConfig
    ports : list of int
        The values of all `Out` ports.

    Attributes
    ----------
    last_step : int
        The cycle of the last step of the last tile.
    """

    def __init__(self, config, ports):
        self._network_core, self._array, self._ports = config, config.array, ports
        self.last_step = -1
        self._first_tile = False  # the next tile is the first one of its pixel
        self._output_free_cycle = 0  # the output unit needs the output address no more
        self._may_end_cycle = 0  # the last step of the next tile can be decided on
        self._result_cycle = 0  # the last result of the last tile
        self._taken_cycle = 0  # the last byte of its added vector is taken
        self._accesses: list[int] = []  # cycles of stores and reads of added vectors, sorted
        # Of the job: steps of a tile, the first cycle of its slots, whether it adds a map, cycles
        # between two requests, and cycles from a request to its result; whether it is partial.
        self._steps = self._slot = self._interval = self._latency = 0
        self._adds_map = self._stores_sums = self._partial = False

    def load(self, now: int) -> int:
        """A load, whose last write is ``LOAD_END`` cycles before."""
        ports, target = self._ports, self._ports[Out.LOAD_TARGET] & 0xFF
        diagonal = ports[Out.LOAD_FLAGS] >> 8 & 1
        vectors = {
            LoadTarget.B: 1 if diagonal else self._array.cols,
            LoadTarget.PARAMETERS: self._network_core.line_vectors,
            LoadTarget.ADD_TABLE: self._network_core.add_table_vectors,
        }[LoadTarget(target)]
        return now + vectors * ports[Out.LOAD_WORDS] + micro.LOAD_END

    def start(self, now: int) -> None:
        """A job starts."""
        ports = self._ports
        kernel = ports[Out.KERNEL]
        height, width = kernel & 0xFF, kernel >> 8
        self._steps = height * width * ports[Out.TAP_VECTORS]
        self._slot = now + micro.SLOT

    def set_flags(self, flags: int) -> None:
        """The flags of the job, which follow its start."""
        array = self._array
        self._adds_map = bool(flags & _JOB_FLAGS["add"])
        self._stores_sums = bool(flags & _JOB_FLAGS["sums"])
        self._partial = bool(flags & _JOB_FLAGS["partial"])
        # Slots between two requests, as `weft.hw.network_core.micro.output.SlotRescaler` has them.
        slots, latency = 1, latencies.rescale(self._network_core)
        if self._adds_map:
            slots, latency = 2, latencies.rescale_total(self._network_core)
        elif self._stores_sums:
            slots, latency = 4, latencies.join(array) + micro.SUMS
        self._interval, self._latency = slots * array.scale_cycles, latency

    def output(self, now: int) -> int:
        """A pixel begins."""
        self._first_tile = True
        return max(now, self._output_free_cycle)

    def tile(self, now: int, columns: int) -> int:
        """A tile begins, with so many columns to come behind its first one."""
        start = max(now, self.last_step + 1)
        first = start + micro.TILE_START
        accesses = self._accesses = self._accesses[bisect_left(self._accesses, first) :]
        waits, before = 0, first + self._steps - 1  # the waits of all steps but the last
        while waits < len(accesses) and accesses[waits] < before:
            waits, before = waits + 1, before + 1
        last = max(before, self._may_end_cycle)
        while last in accesses:
            last += 1
        self.last_step = last
        if not self._partial:
            captured = last + latencies.OPERANDS + latencies.sums(self._array)
            self._request(captured, min(columns + 1, self._array.cols))
        return start

    def drain(self, now: int) -> int:
        """All results of a job are stored, or the steps of a partial job have come."""
        if self._partial:
            return max(now, self.last_step + micro.DRAIN)
        return max(now, self._result_cycle + micro.STORE + micro.DRAIN)

    def _request(self, captured, columns):
        """The requests of a tile, whose sums are held from the cycle after ``captured`` on."""
        # Requests lie on a grid of `_interval` cycles, which begins with the first slot of the job.
        waits = (self._slot - captured - 1) % self._interval
        first = captured + 1 + waits
        last = first + (columns - 1) * self._interval
        if self._first_tile:
            self._first_tile, self._output_free_cycle = False, first + self._latency + 1
        self._may_end_cycle, self._result_cycle = last + 1, last + self._latency
        requests = range(first, last + 1, self._interval)
        stores = [last]
        if self._stores_sums:
            stores = requests
        elif (
            not self._adds_map and columns == self._array.cols
            and latencies.ends_early(self._array)
        ):
            self._may_end_cycle = requests[-2] + 1
        for request in stores:
            insort(self._accesses, request + self._latency + micro.STORE)
        if self._adds_map:
            # A tile needs its vector a cycle after its sums are captured.
            read = max(captured, self._taken_cycle) + micro.ADDED_READ
            if read in self._accesses:
                read += 1
            insort(self._accesses, read)
            self._may_end_cycle = max(self._may_end_cycle, read + 1)
            self._taken_cycle = last + latencies.added_take(self._network_core)


class EngineTimes:
    """`weft.hw.network_core.micro.engine.MicroEngine`, instruction by instruction.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors : sequence of int
        The vectors of the list, 4 bytes each.
    first, log : int
        Numbers of the first vectors of the list and of the log.
    watch : callable, optional
        Called after each job.

    Attributes
    ----------
    now : int
        The cycle of the instruction, or of the next one.
    state : int or None
        State and error, when the list has ended.
    starts, ends, computed, loads : list
        As in `weft.network_core.cycles.ListPrediction`.
    """

    def __init__(self, config, vectors: Sequence[int], first: int, log: int, watch=None):
        self._watch = watch
        program = assemble(config)
        self._words, self._vectors, self._list_vector = config.words, vectors, first
        self._registers, self._ports = list(program.registers), [0] * len(Out)  # by Out
        self._units = UnitTimes(config, self._ports)
        self._code = [self._decode(word) for word in program.words]
        self._data = first | log << 16
        self._at = self._accumulator = self._address = 0
        self._carry = self._loads_head = False
        # A field of the descriptor is wrong; a bit that must be 0 is 1.
        self._bad = self._used = False
        self.now = micro.FIRST_INSTRUCTION
        self.state: int | None = None
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.computed: list[int] = []
        self.loads: list[tuple[int, int]] = []

    def run(self, limit: int) -> None:
        """Execute the program until the list ends, or until ``limit`` cycles are over."""
        code = self._code
        while self.state is None and self.now < limit:
            execute, operand = code[self._at]
            self._at += 1
            execute(operand)
            self.now += 1

    def _decode(self, word):
        """The method of an instruction, and its operand."""
        if word >> 15:
            condition, kind = Condition(word >> 12 & 7), Kind(word >> 9 & 3)
            test = {
                Condition.ALWAYS: self._always, Condition.ZERO: self._is_zero,
                Condition.CARRY: self._has_carry, Condition.HEAD: self._is_loads_head,
                Condition.IS_BAD: self._is_bad, Condition.IS_USED: self._is_used,
            }[condition]
            method = {Kind.JUMP: self._jump, Kind.BAD: self._note_bad, Kind.USED: self._note_used}
            return method[kind], (test, not word >> 11 & 1, word & 0x1FF)
        op, operand = Op(word >> 12), word & 0xFF
        if op == Op.ADD and word & _ADD_STORES:
            return self._increase, operand
        if op == Op.OUT:
            execute = self._OUTS.get(operand, EngineTimes._op_out)
            return types.MethodType(execute, self), operand
        return {
            Op.LD: self._op_ld, Op.ADD: self._op_add, Op.SUB: self._op_sub, Op.AND: self._op_and,
            Op.ST: self._op_st, Op.IN: self._op_in, Op.DO: self._op_do,
        }[op], operand

    def _op_ld(self, register):
        self._accumulator = self._registers[register]

    def _op_add(self, register):
        total = self._accumulator + self._registers[register]
        self._accumulator, self._carry = total & 0xFFFF, total > 0xFFFF

    def _op_sub(self, register):
        total = self._accumulator - self._registers[register]
        self._accumulator, self._carry = total & 0xFFFF, total >= 0

    def _op_and(self, register):
        self._accumulator &= self._registers[register]

    def _op_st(self, register):
        self._registers[register] = self._accumulator

    def _increase(self, register):
        self._op_add(register)
        self._registers[register] = self._accumulator

    def _op_in(self, port):
        if port & In.READ:
            self._read()
            self._bad |= port & ~In.READ == In.ADDRESS and self._data & 0xFF > 0
        self._accumulator = {
            In.LOW: self._data & 0xFFFF, In.HIGH: self._data >> 16,
            In.ADDRESS: self._data >> 8 & 0xFFFF, In.BASE: 0, In.LIMIT: self._words & 0xFFFF,
        }[In(port & ~In.READ)]

    def _read(self):
        # What lies outside of the list, data of loads, has no effect on the cycles.
        offset = self._address - self._list_vector
        self._data = self._vectors[offset] if 0 <= offset < len(self._vectors) else 0
        self._address = self._address + 1 & 0xFFFF
        self.now += micro.READ

    def _op_out(self, port):
        self._ports[port] = self._accumulator

    def _out_memory(self, _):
        self._address = self._accumulator

    def _out_write(self, _):
        self.now += micro.WRITE

    def _out_state(self, _):
        self.state = self._accumulator

    def _out_output(self, _):
        self.now = self._units.output(self.now)

    def _out_flags(self, _):
        self._units.set_flags(self._accumulator)

    def _out_x(self, port):
        self._op_out(port)
        self.now = max(self.now, self._units.last_step + 1)

    def _out_tile(self, _):
        self.now = self._units.tile(self.now, self._accumulator)

    _OUTS = {
        Out.MEMORY: _out_memory, Out.WRITE_LOW: _out_write, Out.WRITE_HIGH: _out_write,
        Out.STATE: _out_state, Out.X: _out_x, Out.OUTPUT: _out_output, Out.TILE: _out_tile,
        Out.FLAGS: _out_flags,
    }

    def _op_do(self, strobes):
        if strobes & Strobe.ZEROS:
            self._read()
            self._used |= self._data > 0
        if strobes & Strobe.CLEAR:
            self._bad = self._used = False
        if strobes & (Strobe.JOBS | Strobe.LOADS):
            self._select(bool(strobes & Strobe.LOADS))
        if strobes & Strobe.LOAD:
            start, self.now = self.now, self._units.load(self.now)
            self.loads.append((start, self.now - micro.LOAD_END))
        if strobes & Strobe.DRAIN:
            self.now = self._units.drain(self.now)
            self.computed.append(self._units.last_step)
        if strobes & Strobe.START:
            self._units.start(self.now)
        if strobes & Strobe.CYCLES:
            self._data = self.now
            is_start = bool(strobes & Strobe.START)
            (self.starts if is_start else self.ends).append(self.now)
            if self._watch and not is_start:
                self._watch()

    def _select(self, loads):
        """Select a head: its registers have the same numbers as the ones of the other head."""
        if loads != self._loads_head:
            registers, self._loads_head = self._registers, loads
            registers[_HEADS:] = registers[_OTHER_HEAD:] + registers[_HEADS:_OTHER_HEAD]

    def _jump(self, operand):
        test, expected, target = operand
        if test() == expected:
            self._at = target
            self.now += micro.JUMP

    def _note_bad(self, operand):
        test, expected, _ = operand
        self._bad |= test() == expected

    def _note_used(self, operand):
        test, expected, _ = operand
        self._used |= test() == expected

    def _always(self):
        return True

    def _is_zero(self):
        return not self._accumulator

    def _has_carry(self):
        return self._carry

    def _is_loads_head(self):
        return self._loads_head

    def _is_bad(self):
        return self._bad

    def _is_used(self):
        return self._used


_VECTOR_BYTES = 4


def predict_micro(config, descriptors, list_address, log_address, limit, watch) -> ListPrediction:
    """Predict the cycles of a list, as `weft.network_core.cycles.predict_list`.

    Raises ValueError likewise, and if the list has an error.
    """
    data = b"".join(descriptor.pack() for descriptor in descriptors)
    vectors = struct.unpack(f"<{len(descriptors) * DESCRIPTOR_BYTES // _VECTOR_BYTES}I", data)
    first, log = (join(address, config.banks) for address in (list_address, log_address))
    engine = EngineTimes(config, vectors, first, log, watch)
    engine.run(limit)
    if engine.state is None:
        raise ValueError(f"a list must end in {limit} cycles")
    error = ListError(engine.state >> 8)
    if error == ListError.DEADLOCK:
        raise ValueError("loads and jobs of a list must not wait for each other")
    if engine.state != NetworkState.DONE:
        raise ValueError(f"a list must have no error, not {error.name}")
    return ListPrediction(
        tuple(zip(engine.starts, engine.ends, strict=True)), tuple(engine.starts),
        tuple(engine.computed), tuple(engine.loads), engine.now,
    )
