"""Lists with several faults on the simulated core: error, state and job are the golden model's."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from mutated_lists import mutated_lists
from network_cores import (
    EARLY,
    MICRO,
    PROGRAM,
    ROW,
    SIMULATED,
    SIMULATED_LONG,
    SIMULATED_SLOWLY,
)
from network_duel import compare_memories
from tiers import tiers

from weft.golden.network_core import run_list
from weft.network_core.config import has_single_port
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    NetworkState,
    join,
    split,
)
from weft.sim.network_core import NetworkSimulation

CORES = {"hardwired": SIMULATED, "microprogram": MICRO, "one row": ROW, "early": EARLY}
SLOW = {f"slow {n}": config for n, config in enumerate(SIMULATED_SLOWLY)}
LONG = {f"long {n}": config for n, config in enumerate(SIMULATED_LONG)}
ALL = CORES | SLOW | LONG
NONE, OPCODE, FIELD, ADDRESS, DEADLOCK = list(ListError)[:5]


@pytest.fixture(scope="module", params=tiers(
    {name: name for name in ALL}, "hardwired", long=[*LONG, *SLOW, "early", "one row"]
))
def core(request):
    with NetworkSimulation(ALL[request.param]) as simulation:
        yield simulation


def differences(core, lists):
    """The lists that do not end as in the golden model, and the errors of the others.

    Lists whose effect is undefined are not executed.
    """
    config, wrong, errors = core.config, [], []
    for mutant in lists:
        case, memory = mutant.case, mutant.case.image.memory.copy()
        places = case.list_address, case.log_address
        window = {"base": case.base, "limit": case.limit}
        try:
            expected = run_list(config, memory, *places, **window)
        except ValueError:
            continue
        core.write(case.image.memory.tobytes())
        outcome = core.run(*(join(place, config.banks) for place in places), **window)
        state = NetworkState.ERROR if expected.error else NetworkState.DONE
        found = outcome.finished, outcome.state, outcome.error, outcome.job
        if found != (True, state, expected.error, expected.jobs):
            wrong.append((mutant.changes, outcome, expected))
            continue
        errors.append(expected.error)
        if mutant.defined and state == NetworkState.DONE:
            log = join(case.log_address, config.banks) + case.base * config.banks
            compare_memories(config, core.read(), memory, log, expected.jobs)
    return wrong, errors


@pytest.mark.parametrize("seed, count", [
    (1, 200), pytest.param(2, 2000, marks=pytest.mark.long),
])
def test_mutated_lists(core, seed, count):
    lists = mutated_lists(np.random.default_rng(seed), core.config, count)
    wrong, errors = differences(core, lists)
    assert wrong == []
    assert len(errors) > 0.95 * count
    for error in (NONE, OPCODE, FIELD, ADDRESS, DEADLOCK):
        assert errors.count(error) > count / 20


# Lists with combinations of faults, and how they end: error, and jobs that have ended. Each list
# ends with the memory: what it does not have lies beyond the window.
WORDS = 1 << 8  # of an address: one word
JOB = ListJob(
    panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1, kernel_height=1,
    kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1, stride_y=1, stride_x=1,
)
LOAD = ListLoad(words=1, fill=1)
OUTSIDE = -2 * WORDS & 0xFFFFFFFF  # before the window, at a beat of a program memory
NO_RESULT = ListEnd(result=OUTSIDE, result_bytes=1)
NEVER = replace(LOAD, jobs=99)
BLOCKED = replace(JOB, loads=99)


def unused(descriptor, word=31):
    """The bytes of a descriptor with an unused bit."""
    words = list(struct.unpack("<32I", descriptor.pack()))
    words[word] |= 1 << 31
    return struct.pack("<32I", *words)


def version(descriptor):
    """The bytes of a descriptor of another version."""
    return bytes([descriptor.pack()[0] ^ 0x30]) + descriptor.pack()[1:]


WRONG = {
    "load": replace(LOAD, words=0), "job": replace(JOB, columns=0, loads=99),
    "loop": ListLoop(times=0), "end": replace(NO_RESULT, result_bytes=1025),
}
COMBINATIONS = {
    **{f"{name}, its fields": ([JOB, d, NO_RESULT], FIELD, 1)
       for name, d in WRONG.items() if name != "load"},
    **{f"{name}, a bit and its fields": ([JOB, unused(d), NO_RESULT], OPCODE, 1)
       for name, d in WRONG.items()},
    **{f"{name}, version and fields": ([JOB, version(d), NO_RESULT], OPCODE, 1)
       for name, d in WRONG.items()},
    **{f"{name}, beyond the window": ([JOB, d.pack()[:part]], ADDRESS, 1)
       for name, d in WRONG.items() for part in (16, 32, 64, 112)},
    **{f"{name}, a bit, beyond the window": ([JOB, unused(d, 0)[:part]], ADDRESS, 1)
       for name, d in WRONG.items() for part in (16, 64)},
    "nothing behind a loop": ([JOB, ListLoop(times=2, body=1)], ADDRESS, 2),
    "nothing behind a load": ([JOB, LOAD], ADDRESS, 1),
    "a load that waits, END": ([NEVER, JOB, ListEnd()], DEADLOCK, 1),
    "a load that waits, a result outside": ([NEVER, JOB, NO_RESULT], ADDRESS, 1),
    "a load that waits, a wrong END": ([NEVER, JOB, WRONG["end"]], FIELD, 1),
    "a load that waits, no END": ([NEVER, JOB], ADDRESS, 1),
    "a load that waits and reads outside": (
        [JOB, replace(NEVER, fill=0, source=OUTSIDE), ListEnd()], DEADLOCK, 1,
    ),
    "a load that reads outside, a result outside": (
        [JOB, replace(LOAD, fill=0, source=OUTSIDE), NO_RESULT], ADDRESS, 1,
    ),
    "a wrong load, a result outside": ([JOB, WRONG["load"], NO_RESULT], ADDRESS, 1),
    "a wrong load, END": ([JOB, WRONG["load"], ListEnd()], FIELD, 1),
    "a load outside, then a wrong job": (
        [JOB, replace(LOAD, fill=0, source=OUTSIDE), WRONG["job"], ListEnd()], FIELD, 1,
    ),
    "a load outside, then a job that waits": (
        [JOB, replace(LOAD, fill=0, source=OUTSIDE), BLOCKED, ListEnd()], ADDRESS, 1,
    ),
    "a job that waits, a wrong load": ([JOB, BLOCKED, WRONG["load"], ListEnd()], FIELD, 1),
    "a job that waits, a result outside": ([JOB, BLOCKED, NO_RESULT], DEADLOCK, 1),
    "a job that waits, no END": ([JOB, BLOCKED], ADDRESS, 1),
    "a job that waits and stores outside": (
        [JOB, replace(BLOCKED, output=OUTSIDE), ListEnd()], DEADLOCK, 1,
    ),
    "an empty result outside": ([JOB, replace(NO_RESULT, result_bytes=0)], NONE, 1),
}


@pytest.fixture(
    scope="module", params=tiers({name: name for name in (*CORES, "program memory")}, "hardwired")
)
def any_core(request):
    with NetworkSimulation((CORES | {"program memory": PROGRAM})[request.param]) as simulation:
        yield simulation


def end_of(core, descriptors, log_inside=True):
    """How a list ends that ends with its memory, on the core and in the golden model.

    The log begins before the list, or in the last vector, which is too short for an entry.
    """
    config = core.config
    data = b"".join(d if isinstance(d, bytes) else d.pack() for d in descriptors)
    size = config.program_bytes or config.memory_bytes
    beat = config.beat_bytes if config.program_words else config.array.depth
    first = (size - len(data)) // beat * beat
    # The vectors of the list that the memory does not have lie beyond its end.
    assert size - first == len(data) or not config.program_words
    lists = bytearray(size)
    lists[first : first + len(data)] = data
    memory = bytearray(config.memory_bytes) if config.program_words else lists
    number = first // config.array.depth
    log = number - 64 if log_inside else size // config.array.depth - 1
    places = [split(place, config.banks) for place in (number, log)]
    core.write(bytes(memory))
    if config.program_words:
        core.write_program(bytes(lists))
    outcome = core.run(number, log)
    expected = run_list(config, memory, *places, program=lists)
    assert outcome.finished
    assert outcome.state == (NetworkState.ERROR if outcome.error else NetworkState.DONE)
    return (outcome.error, outcome.job), (expected.error, expected.jobs)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_order_of_checks(any_core, name):
    descriptors, *wanted = COMBINATIONS[name]
    assert end_of(any_core, descriptors) == (tuple(wanted), tuple(wanted))


@pytest.mark.parametrize("job, wanted", [
    (JOB, ADDRESS), (replace(JOB, output=OUTSIDE), ADDRESS), (BLOCKED, DEADLOCK),
    (WRONG["job"], FIELD), (unused(WRONG["job"]), OPCODE),
], ids=["right", "output", "waits", "field", "bit"])
def test_a_log_outside(any_core, job, wanted):
    assert end_of(any_core, [job, ListEnd()], log_inside=False) == ((wanted, 0), (wanted, 0))


@pytest.mark.parametrize("fields, wanted", [
    ({"add": 1}, FIELD), ({"sums": 1}, FIELD), ({"columns": 4096}, FIELD),
    ({"add": 1, "output": 255}, FIELD), ({"input": OUTSIDE, "columns": 4095}, ADDRESS),
    ({"loads": 99}, DEADLOCK),
], ids=lambda value: str(value))
def test_softmax_is_a_flag_of_a_core_with_the_option(any_core, fields, wanted):
    wanted = wanted if any_core.config.softmax else OPCODE
    job = replace(JOB, softmax=1, **fields)
    assert end_of(any_core, [JOB, job, ListEnd()]) == ((wanted, 1), (wanted, 1))


@pytest.mark.parametrize("fields, wanted", [
    ({"add": 1}, FIELD), ({"sums": 1}, FIELD), ({"partial": 1}, FIELD), ({"softmax": 1}, FIELD),
    ({"columns": 0}, FIELD), ({"input": OUTSIDE, "columns": 65535}, ADDRESS),
    ({"add_pixel_step": OUTSIDE}, ADDRESS), ({"loads": 99}, DEADLOCK),
], ids=lambda value: str(value))
def test_lstm_is_a_flag_of_a_core_with_the_option(any_core, fields, wanted):
    wanted = wanted if any_core.config.lstm else OPCODE
    job = replace(JOB, lstm=1, **fields)
    assert end_of(any_core, [JOB, job, ListEnd()]) == ((wanted, 1), (wanted, 1))


@pytest.mark.parametrize("fields, wanted", [
    ({"pairs": 1, "quads": 1}, FIELD), ({"pairs": 1, "add": 1}, FIELD),
    ({"quads": 1, "sums": 1}, FIELD), ({"quads": 1, "softmax": 1}, FIELD),
    ({"words": 1, "quad_pairs": 1}, FIELD), ({"words": 1, "lstm": 1}, FIELD),
    ({"pairs": 1, "lstm": 1}, FIELD), ({"quads": 1, "input": OUTSIDE}, ADDRESS),
    ({"quads": 1, "partial": 1, "loads": 99}, DEADLOCK),
], ids=lambda value: str(value))
def test_digits_are_flags_of_a_core_with_the_option(any_core, fields, wanted):
    wanted = wanted if any_core.config.int16 else OPCODE
    job = replace(JOB, columns=4, **fields)
    assert end_of(any_core, [JOB, job, ListEnd()]) == ((wanted, 1), (wanted, 1))


def test_an_address_has_one_bit_more_than_the_words_or_16(any_core):
    config = any_core.config
    far = 2 * config.address_words * WORDS
    moved = [
        replace(JOB, output=far), replace(JOB, input=far),
        replace(JOB, out_width=2, output_pixel_step=far + WORDS),
        replace(JOB, out_width=2, in_width=2, stride_x=1, input_pixel_step=far + WORDS),
        replace(JOB, kernel_width=2, tile_words=2, in_width=2, dilation_x=1, tap_x_step=far),
    ]
    wanted = (ADDRESS, 0) if has_single_port(config.array) else (NONE, 1)
    for job in moved:
        assert end_of(any_core, [job, ListEnd()]) == (wanted, wanted)
    wanted = (ADDRESS, 0) if has_single_port(config.array) else (NONE, 0)
    load = replace(LOAD, fill=0, source=far)
    assert end_of(any_core, [load, ListEnd()]) == (wanted, wanted)
    again = max(far, WORDS << 16)
    every = [replace(JOB, input=again, output=again), replace(LOAD, fill=0, source=again)]
    assert end_of(any_core, [*every, ListEnd()]) == ((NONE, 1), (NONE, 1))


def taps(step, turns):
    """A job whose last tap lies ``turns`` steps of ``step`` words behind the first one.

    The taps between them lie outside of the map.
    """
    step = step * WORDS & 0xFFFFFFFF
    return replace(
        JOB, kernel_height=2, kernel_width=turns, tile_words=2 * turns, in_height=2, dilation_y=1,
        dilation_x=1, tap_x_step=step, tap_y_step=step,
    )


def test_a_tap_far_behind_the_first_one(any_core):
    """The words from the first tap to another one have two bits more than an address, or 16."""
    words = any_core.config.address_words
    again = (words, 16) if has_single_port(any_core.config.array) else (words // 2, 16)
    for step, turns, error in (
        (1, 2, NONE), (words // 2, 4, ADDRESS), (words // 4, 8, ADDRESS), (-words, 2, ADDRESS),
        (words // 2, 8, ADDRESS), (*again, NONE),
    ):
        wanted = error, int(error == NONE)
        assert end_of(any_core, [taps(step, turns), ListEnd()]) == (wanted, wanted), (step, turns)
