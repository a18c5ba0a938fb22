"""Errors, deadlocks and aborts of lists: kind and number of the job, as in the golden model."""

import random
import struct
from dataclasses import replace

import pytest
from list_bench import ListRun, Timing, run_lists
from network_cores import small_network_core
from random_lists import store_list

from weft.golden.network_core import run_list
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    NetworkState,
    split,
)

CHIP = small_network_core(4, 4, 16, read_vectors=4, words=512, b_words=8, lines=4)
BASE, LIMIT = 2, 510
END_OF_AREA = (LIMIT - BASE) * CHIP.banks  # numbers of vectors, from BASE on
LIST, LOG = 150, 130
FAST = Timing(jobs=(2, 9), loads=(1, 6), latency=3)
JOB = ListJob(
    panel_rows=4, out_height=1, out_width=2, columns=3, tile_words=1, kernel_height=1,
    kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=2, stride_x=1, stride_y=1,
    input=split(100, CHIP.banks), input_pixel_step=split(1, CHIP.banks), low=-128, high=127,
    output=split(104, CHIP.banks), output_pixel_step=split(1, CHIP.banks),
)
LOAD = ListLoad(words=2, source=split(120, CHIP.banks))
LOOP = ListLoop(times=2, body=1, body_jobs=1)
END = ListEnd(result=split(104, CHIP.banks), result_bytes=20)


def outcomes(cases, config=CHIP, **fields):
    """The (error, number) of lists that run one after the other: on the hardware, and golden.

    Parameters
    ----------
    cases : dict
        By name: descriptors; or descriptors, and a dict that has the numbers of the first vector
        of the list and of the log.
    config : NetworkCoreConfig
        A core with the memory of `CHIP`.
    """
    memory = bytearray(random.Random(1).randbytes(CHIP.memory_bytes))
    runs, number = {}, LIST
    for name, case in cases.items():
        descriptors, places = case if isinstance(case, tuple) else (case, {})
        first = places.get("list", number)
        store_list(CHIP, memory, BASE * CHIP.banks + first, descriptors)
        runs[name] = run_of(
            list=split(first, CHIP.banks), log=split(places.get("log", LOG), CHIP.banks), **fields
        )
        number += 8 * len(descriptors) * ("list" not in places)
    assert number <= END_OF_AREA - 30
    image = bytes(memory)
    run_lists(
        config, memory, list(runs.values()), base=BASE, limit=LIMIT, timing=FAST, cycles=50_000
    )
    found, expected = {}, {}
    for name, run in runs.items():
        model = run_list(
            config, bytearray(image), run.list, run.log, base=BASE, limit=LIMIT, eager=False
        )
        found[name], expected[name] = outcome_of(run), (model.error, model.jobs)
        assert len(run.ends) == run.status["job"]
    return found, expected


def run_of(**fields):
    return ListRun(**{"log": split(LOG, CHIP.banks)} | fields)


def outcome_of(run):
    """The (error, number) of a list that has run."""
    state = NetworkState.ERROR if run.status["error"] else NetworkState.DONE
    assert run.status["state"] == state
    return run.status["error"], run.status["job"]


def run_alone(descriptors, timing=FAST, **fields):
    """Run one list with events that the golden model does not have."""
    memory = bytearray(CHIP.memory_bytes)
    run = run_of(list=store_list(CHIP, memory, LIST, descriptors), **fields)
    run_lists(CHIP, memory, [run], timing=timing)
    return run


def with_word(descriptor, word, flip):
    """The bytes of a descriptor with some bits of a word changed."""
    words = list(struct.unpack("<32I", descriptor.pack()))
    words[word] ^= flip
    return struct.pack("<32I", *words)


OPCODES = {
    "opcode 0": with_word(JOB, 0, 2), "opcode 5": with_word(JOB, 0, 7),
    "opcode 12": with_word(END, 0, 8), "version": with_word(JOB, 0, 0x30),
    **{
        f"{type(d).__name__} {word}.{bit}": with_word(d, word, 1 << bit)
        for d, word, bit in (
            (JOB, 0, 12), (JOB, 0, 13), (JOB, 0, 31), (JOB, 1, 24), (JOB, 5, 16), (JOB, 25, 0),
            (JOB, 31, 31),
            (LOAD, 0, 10), (LOAD, 4, 0), (LOAD, 31, 31), (LOOP, 0, 8), (LOOP, 7, 0),
            (LOOP, 20, 5), (END, 0, 9), (END, 1, 16), (END, 3, 0), (END, 17, 7),
        )
    },
}
NO_BANK = CHIP.banks
FIELDS = {
    **{f"{name} 0": replace(JOB, **{name: 0}) for name in (
        "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
        "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
    )},
    "panel_rows 5": replace(JOB, panel_rows=5), "sums and add": replace(JOB, sums=1, add=1),
    **{f"bank of {name}": replace(JOB, **{name: NO_BANK}) for name in (
        "group_step", "input", "input_pixel_step", "input_row_step", "tap_x_step", "tap_y_step",
        "output", "output_pixel_step", "output_row_step", "add_input", "add_pixel_step",
        "add_row_step",
    )},
    "bank 255": replace(JOB, tap_x_step=0xFF),
    "words 0": replace(LOAD, words=0), "target 3": replace(LOAD, target=3),
    "B": replace(LOAD, first_word=7), "lines": replace(LOAD, target=1, first_word=3),
    "ADD table": replace(LOAD, target=2, first_word=511),
    "bank of source": replace(LOAD, source=NO_BANK),
    "times 0": replace(LOOP, times=0), "body 0": replace(LOOP, body=0),
    **{f"bank of {name}": replace(LOOP, **{name: NO_BANK}) for name in (
        "source_step", "input_step", "output_step", "add_step",
    )},
    "result_bytes": replace(END, result_bytes=1025), "bank of result": replace(END, result=NO_BANK),
}


@pytest.mark.parametrize("error, cases", [
    (ListError.OPCODE, OPCODES), (ListError.FIELD, FIELDS),
], ids=["opcodes", "fields"])
def test_wrong_descriptors(error, cases):
    lists = {name: [JOB, bad, replace(JOB, loads=1), END] for name, bad in cases.items()}
    found, expected = outcomes(lists)
    assert found == expected == dict.fromkeys(cases, (error, 1))


def test_a_job_multiplies_only_with_add_and_on_a_core_with_the_option():
    job = replace(JOB, add=1, add_input=JOB.input)
    cases = {
        "with add": [replace(job, multiply=1), JOB, END], "alone": [JOB, replace(JOB, multiply=1)],
        "with sums": [JOB, replace(JOB, sums=1, multiply=1)],
    }
    found, expected = outcomes(cases, replace(CHIP, multiply_maps=True))
    assert found == expected == {
        "with add": (ListError.NONE, 2), "alone": (ListError.FIELD, 1),
        "with sums": (ListError.FIELD, 1),
    }
    found, expected = outcomes(cases)
    assert found == expected == {
        "with add": (ListError.OPCODE, 0), "alone": (ListError.OPCODE, 1),
        "with sums": (ListError.OPCODE, 1),
    }


def test_softmax_is_alone_and_has_4095_columns_at_most():
    """A job without a fault waits for ever, because no load follows."""
    config = replace(CHIP, softmax=True, array=replace(CHIP.array, requantize="tflite"))
    waits = {
        "right": dict(softmax=1), "4095 columns": dict(softmax=1, columns=4095),
        "4096 columns of another job": dict(columns=4096),
    }
    wrong = {
        "with add": dict(softmax=1, add=1), "with sums": dict(softmax=1, sums=1),
        "4096 columns": dict(softmax=1, columns=4096),
    }
    cases = {
        name: [JOB, replace(JOB, loads=99, **fields), END]
        for name, fields in (waits | wrong).items()
    }
    found, expected = outcomes(cases, config)
    assert found == expected == (
        dict.fromkeys(waits, (ListError.DEADLOCK, 1)) | dict.fromkeys(wrong, (ListError.FIELD, 1))
    )


def test_digits_have_one_form_and_no_other():
    """A job without a fault waits for ever, because no load follows."""
    array = replace(CHIP.array, requantize="tflite", lanes=4)
    forms = "pairs", "quads", "quad_pairs", "words"
    waits = {form: {form: 1} for form in forms} | {"a part": dict(pairs=1, partial=1)}
    wrong = {
        f"{form}, {other}": {form: 1, other: 1}
        for n, form in enumerate(forms) for other in (*forms[:n], "add", "sums")
    }
    cases = {
        name: [JOB, replace(JOB, loads=99, **fields), END]
        for name, fields in (waits | wrong).items()
    }
    found, expected = outcomes(cases, replace(CHIP, int16=True, array=array))
    assert found == expected == (
        dict.fromkeys(waits, (ListError.DEADLOCK, 1)) | dict.fromkeys(wrong, (ListError.FIELD, 1))
    )


def test_two_rows_are_pairs_of_results_in_two_banks():
    """A job without a fault waits for ever, because no load follows."""
    array = replace(CHIP.array, hop=2, lanes=4, requantize="tflite")
    waits = {
        "pairs": {}, "a part": dict(partial=1), "three rows": dict(out_height=3),
        "a panel of two": dict(panel_rows=2),
    }
    wrong = {
        "add": dict(add=1), "sums": dict(sums=1), "softmax": dict(softmax=1),
        "an odd row": dict(out_width=3), "an odd panel": dict(panel_rows=3),
        "one bank": dict(output_pixel_step=split(2 * CHIP.banks, CHIP.banks)),
    }
    cases = {
        name: [JOB, replace(JOB, loads=99, two_rows=1, **fields), END]
        for name, fields in (waits | wrong).items()
    }
    found, expected = outcomes(cases, replace(CHIP, two_rows=True, softmax=True, array=array))
    assert found == expected == (
        dict.fromkeys(waits, (ListError.DEADLOCK, 1)) | dict.fromkeys(wrong, (ListError.FIELD, 1))
    )


def test_weights_of_int4_are_whole_words_of_b():
    """A load without a fault waits for ever."""
    waits = {"packed": {}, "one word": dict(words=1)}
    wrong = {
        "diagonal": dict(diagonal=1), "fill": dict(fill=1), "parameters": dict(target=1),
        "table": dict(target=2),
    }
    cases = {
        name: [JOB, replace(LOAD, jobs=99, packed=1, **fields), END]
        for name, fields in (waits | wrong).items()
    }
    array = replace(CHIP.array, cols=2 * CHIP.read_vectors)
    found, expected = outcomes(cases, replace(CHIP, int4=True, array=array))
    assert found == expected == (
        dict.fromkeys(waits, (ListError.DEADLOCK, 1)) | dict.fromkeys(wrong, (ListError.FIELD, 1))
    )


LEGAL = {
    "edges of buffers": [
        replace(LOAD, first_word=6), replace(LOAD, target=1, first_word=2),
        replace(LOAD, target=1, diagonal=1, words=4), replace(LOAD, words=8, source=0, fill=1),
    ],
    "an empty result": [JOB, replace(END, result_bytes=0, result=split(-1, CHIP.banks))],
    "the last vectors": [JOB, replace(END, result=split(END_OF_AREA - 2, CHIP.banks))],
    "sums": [replace(JOB, sums=1), replace(JOB, add=1, add_input=JOB.input)],
    "loops": [JOB, LOAD, replace(LOOP, body=2, times=3), JOB, LOOP, JOB, replace(LOOP, times=1)],
}


def test_legal_lists():
    found, expected = outcomes({name: [*one, END] for name, one in LEGAL.items()})
    assert found == expected
    assert {error for error, _ in found.values()} == {ListError.NONE}


BAD = replace(LOAD, words=0)
ORDERS = {  # the fault of a load ends the list when no job can start any more
    "a job needs it": ([BAD, JOB, JOB, replace(JOB, loads=1), JOB, END], 2),
    "no job needs it": ([JOB, BAD, JOB, END], 2),
    "a job is bad, too": ([BAD, JOB, replace(JOB, panel_rows=0), END], 1),
    "a loop in a loop": ([JOB, LOOP, replace(LOOP, body=2), END], 2),
    "a body before the list": ([JOB, replace(LOOP, body=2), END], 1),
}


def test_order_of_faults():
    found, expected = outcomes({name: one for name, (one, _) in ORDERS.items()})
    assert found == expected == {
        name: (ListError.FIELD, number) for name, (_, number) in ORDERS.items()
    }


DEADLOCKS = {
    "a job": ([JOB, LOAD, replace(JOB, loads=2), END], 1),
    "a load": ([replace(LOAD, jobs=3), JOB, JOB, END], 2),
    "both": ([JOB, replace(LOAD, jobs=2), replace(JOB, loads=1), END], 1),
    "a turn": ([LOAD, replace(JOB, loads=1), replace(LOOP, body_loads=1), END], 1),
    "a count of 17 bits": (
        [LOAD, replace(JOB, loads=1), replace(LOOP, times=4, body_loads=0xFFFF), END], 1
    ),
    "a count that returns to 0": (
        [LOAD, LOAD, JOB, replace(LOOP, times=4, body_loads=0x8000), END], 1
    ),
}


def test_deadlocks():
    found, expected = outcomes({name: one for name, (one, _) in DEADLOCKS.items()})
    assert found == expected == {
        name: (ListError.DEADLOCK, number) for name, (_, number) in DEADLOCKS.items()
    }


ADDRESSES = {
    "a list before base": ([END], {"list": -1}, 0),
    "a list behind the limit": ([END], {"list": END_OF_AREA}, 0),
    "the end of a list": ([JOB, END], {"list": END_OF_AREA - 15}, 1),
    "a log before base": ([JOB, END], {"log": -1}, 0),
    "the second entry of a log": ([JOB, JOB, END], {"log": END_OF_AREA - 1}, 1),
    "the second vector of a result": (
        [JOB, replace(END, result=split(END_OF_AREA - 1, CHIP.banks))], {}, 1
    ),
}


def test_addresses():
    found, expected = outcomes({
        name: (descriptors, places) for name, (descriptors, places, _) in ADDRESSES.items()
    })
    assert found == expected == {
        name: (ListError.ADDRESS, number) for name, (_, _, number) in ADDRESSES.items()
    }


def test_a_list_or_a_log_in_a_bank_that_does_not_exist():
    memory = bytearray(CHIP.memory_bytes)
    good = store_list(CHIP, memory, LIST, [JOB, END])
    runs = [run_of(list=NO_BANK), run_of(list=good, log=NO_BANK), run_of(list=good)]
    run_lists(CHIP, memory, runs, timing=FAST)
    assert [outcome_of(run) for run in runs] == [
        (ListError.FIELD, 0), (ListError.FIELD, 0), (ListError.NONE, 1)
    ]


def test_an_address_error_of_a_job_ends_the_list_at_once():
    run = run_alone([JOB, JOB, JOB, END], Timing(jobs=(40, 40), latency=3), error_at=90)
    assert run.starts[-1] < 90 < run.starts[-1] + 40
    assert run.finished_at == 91
    assert outcome_of(run) == (ListError.ADDRESS, len(run.starts) - 1)


@pytest.mark.parametrize("descriptors, failing, number", [
    ([LOAD, LOAD, LOAD, replace(JOB, loads=1), JOB, replace(JOB, loads=2), END], 1, 2),
    ([LOAD, JOB, END], 0, 1),
])
def test_an_address_error_of_a_load_ends_the_list_when_no_job_can_start(
    descriptors, failing, number
):
    run = run_alone(descriptors, load_error_at=failing)
    assert outcome_of(run) == (ListError.ADDRESS, number)


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.long)])
def test_abort_and_then_a_list(step):
    config = small_network_core(1, 8, 16, read_vectors=8, words=32, b_words=8, lines=4)
    memory, log = bytearray(config.memory_bytes), split(100, config.banks)
    load, job = (replace(d, source=0) if d is LOAD else replace(
        d, panel_rows=1, input=0, output=0, loads=1
    ) for d in (LOAD, JOB))
    end = ListEnd()
    aborted = store_list(config, memory, 0, [load, job, replace(job, loads=0), end])
    good = store_list(config, memory, 40, [load, job, end])
    whole = ListRun(aborted, log)
    run_lists(config, memory, [whole], timing=FAST)
    cycles = range(0, whole.finished_at, step)
    runs = [run for at in cycles for run in (ListRun(aborted, log, abort=at), ListRun(good, log))]
    run_lists(config, memory, runs, timing=FAST, cycles=50_000)
    ended = (NetworkState.DONE, ListError.NONE)
    for run in runs[::2]:
        found = run.status["state"], run.status["error"]
        assert found == ended or found == (NetworkState.ABORTED, ListError.ABORTED)
        assert found == ended or run.finished_at == run.abort + 1
        assert run.status["job"] in (len(run.ends), len(run.ends) - 1)
    # The durations are random: the last aborts may come after the end.
    assert sum(run.status["state"] == NetworkState.ABORTED for run in runs) > 0.8 * len(cycles)
    for run in runs[1::2]:
        assert (run.status["state"], run.status["error"], run.status["job"]) == (*ended, 1)
