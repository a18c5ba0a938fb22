"""Amaranth's simulator, twice as fast: the same delta cycles with less work in each of them.

Amaranth's engine asks every process in each delta cycle whether it has to run, and calls a method
for each signal that a process drives. Here, processes that have to run stand in a list, and
the generated code compares a driven signal in place, without masks that keep all bits.
`tests/verif/test_quick_engine.py` holds both engines against each other.
"""

import re
from unittest import mock

from amaranth.hdl import ShapeCastable, Signal, Value
from amaranth.hdl._ast import Slice
from amaranth.sim import _pyrtl, pysim
from amaranth.sim._async import AsyncProcess, ChangedTrigger, SampleTrigger
from amaranth.sim._pyeval import eval_value

__all__ = ["QuickEngine"]

_SLOT = re.compile(r"\bslots\[(\d+)\]")
_UPDATE = re.compile(r"^    slots\[(\d+)\]\.update\(next_\1, (-?\d+)\)$", re.MULTILINE)
_WRITE = re.compile(r"^    (slots\[\d+\]\.write\(\w+, \w+, (\w+)\))$", re.MULTILINE)
_MASKED = re.compile(r"\((0x[0-9a-f]+) & (slots\[(\d+)\]\.curr)\)")
_NO_SHIFT = re.compile(r" (<<|>>) 0\)")
_HEAD = "def run():\n"


class _Waker:
    """The wish of a process to run when a signal or a memory changes."""

    def __init__(self, process, polarity=None):
        self.process, self.polarity = process, polarity


class _SignalState(pysim._PySignalState):
    """A signal, with the processes that run when it changes and those that run at its edges."""

    __slots__ = ("edges", "readers")

    def __init__(self, signal, pending):
        super().__init__(signal, pending)
        self.readers, self.edges = [], {}


class _MemoryState(pysim._PyMemoryState):
    """A memory, with the processes that run when it is written."""

    __slots__ = ("readers",)

    def __init__(self, memory, pending):
        super().__init__(memory, pending)
        self.readers = []


class _EngineState(pysim._PyEngineState):
    """All signals and memories; processes that wait for them are kept apart from triggers."""

    def get_signal(self, signal):
        return self._slot(self.signals, signal, _SignalState)

    def get_memory(self, memory):
        return self._slot(self.memories, memory, _MemoryState)

    def _slot(self, known, key, kind):
        try:
            return known[key]
        except KeyError:
            known[key] = index = len(self.slots)
            self.slots.append(kind(key, self.pending))
            return index

    def add_signal_waker(self, signal, waker):
        state = self.slots[self.get_signal(signal)]
        if not isinstance(waker, _Waker):
            state.add_waker(waker)
        elif waker.polarity is None:
            state.readers.append(waker.process)
        else:
            state.edges.setdefault(waker.polarity, []).append(waker.process)

    def add_memory_waker(self, memory, waker):
        state = self.slots[self.get_memory(memory)]
        if isinstance(waker, _Waker):
            state.readers.append(waker.process)
        else:
            state.add_waker(waker)


class _TriggerState(pysim._PyTriggerState):
    """What a bench waits for; the places of its samples are looked up once."""

    def __init__(self, engine, combination, pending, *, oneshot):
        super().__init__(engine, combination, pending, oneshot=oneshot)
        self._samples = [_sample(engine.state, trigger) for trigger in combination._triggers]

    def compute_result(self):
        self._result = tuple([
            trigger in self._triggers_hit if sample is None else sample()
            for trigger, sample in zip(self._combination._triggers, self._samples, strict=True)
        ])


class QuickEngine(pysim.PySimEngine):
    """An engine for ``amaranth.sim.Simulator``; it does not write waveforms."""

    def __init__(self, design):
        self._design = design
        self._state = _EngineState()
        with mock.patch.multiple(
            _pyrtl, create=True, compile=self._compile, comb_waker=_Waker, edge_waker=_Waker,
            memory_waker=_Waker,
        ):
            self._circuits = _pyrtl._FragmentCompiler(self._state)(design.fragment)
        self._processes = set()  # clocks and processes in Python
        self._testbenches = []
        self._delta_cycles = 0
        self._vcd_writers = []
        self._active_triggers = set()
        self._ready = [process for process in self._circuits if process.runnable]

    def write_vcd(self, **options):
        raise NotImplementedError("waveforms need Amaranth's own engine")

    def reset(self):
        super().reset()
        for process in self._circuits:
            process.reset()
        self._ready[:] = [process for process in self._circuits if process.runnable]

    def add_trigger_combination(self, combination, *, oneshot):
        return _TriggerState(self, combination, self._active_triggers, oneshot=oneshot)

    def step_design(self):
        converged = False
        while not converged:
            if self._active_triggers:
                for trigger in self._active_triggers:
                    trigger.run()
                self._active_triggers.clear()
            ready = self._ready
            self._ready = []
            for process in ready:
                process.runnable = False
                process.run()
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
                    assert type(process) is not AsyncProcess or process.waits_on is None or (
                        isinstance(process.waits_on, _TriggerState)
                    )
            converged = self._commit()
            self._delta_cycles += 1

    def advance(self):
        self.step_design()
        converged = False
        while not converged:
            converged = True
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable = False
                    testbench.run()
                    assert testbench.waits_on is None or (
                        isinstance(testbench.waits_on, _TriggerState)
                    )
                    converged = False
        self._state.timeline.advance()
        # Circuits never keep a simulation running.
        return any(
            process.critical for some in (self._testbenches, self._processes) for process in some
        )

    def _commit(self):
        """Apply all changes; returns whether there were none."""
        ready, pending, converged = self._ready, self._state.pending, True
        for state in pending:
            if type(state) is _SignalState:
                old, new = state.curr, state.next
                if old == new:
                    continue
                for process in state.readers:
                    if not process.runnable:
                        process.runnable = True
                        ready.append(process)
                if state.edges:
                    for process in state.edges.get(new, ()):
                        if not process.runnable:
                            process.runnable = True
                            ready.append(process)
                if state.wakers:
                    pysim._run_wakers(state.wakers, old, new)
                state.curr = new
                converged = False
            else:
                for process in state.readers:
                    if not process.runnable:
                        process.runnable = True
                        ready.append(process)
                if state.commit():
                    converged = False
        pending.clear()
        return converged

    def _compile(self, code, filename, mode):
        """Compile the code of a process, with its signals as local names."""
        if not code.startswith(_HEAD):
            raise AssertionError(f"the code of a process must start with {_HEAD!r}, not {code!r}")
        code = _UPDATE.sub(self._update, code)
        # A write that enables no bit changes nothing.
        code = _WRITE.sub(r"    if \2:\n        \1", code)
        code = _NO_SHIFT.sub(")", _MASKED.sub(self._unmasked, code))
        names = ", ".join(f"slot_{n}=slots[{n}]" for n in sorted(set(_SLOT.findall(code)), key=int))
        code = _SLOT.sub(r"slot_\1", code.removeprefix(_HEAD))
        return compile(f"def run({names}):\n{code}", filename, mode)

    def _update(self, match):
        """The end of a process: drive a signal, if its process drives all of its bits."""
        number, bits = match[1], self._bits(match[1])
        if int(match[2]) & bits != bits:
            return match[0]
        slot, value = f"slots[{number}]", f"next_{number}"
        return (
            f"    if {slot}.next != {value}:\n"
            f"        {slot}.next = {value}\n"
            f"        {slot}.pending.add({slot})"
        )

    def _unmasked(self, match):
        """A signal without a mask that keeps all of its bits."""
        bits = self._bits(match[3])
        signed = self._state.slots[int(match[3])].signal.shape().signed
        return match[2] if not signed and int(match[1], 16) & bits == bits else match[0]

    def _bits(self, number):
        """All bits of the signal with this number."""
        return (1 << len(self._state.slots[int(number)].signal)) - 1


def _sample(state, trigger):
    """A function that reads what a trigger samples; None if it samples nothing."""
    if not isinstance(trigger, SampleTrigger | ChangedTrigger):
        return None
    read = _reader(state, Value.cast(trigger.value))
    if not isinstance(trigger.shape, ShapeCastable):
        return read
    from_bits = trigger.shape.from_bits
    return lambda: from_bits(read())


def _reader(state, value):
    """A function that evaluates a value."""
    if type(value) is Signal:
        slot = state.slots[state.get_signal(value)]
        return lambda: slot.curr
    if type(value) is Slice:
        read, start, mask = _reader(state, value.value), value.start, (1 << len(value)) - 1
        return lambda: read() >> start & mask
    return lambda: eval_value(state, value)
