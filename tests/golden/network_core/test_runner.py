"""Lists in the golden model: order of loads and jobs, loops, errors, results."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_jobs import random_job

from weft.config import Config
from weft.golden.network_core import ListOutcome, NetworkCoreBuffers, run_list
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    split,
)

CORE = Config(rows=2, cols=2, depth=2, lanes=2, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(array=CORE, words=1024, b_words=8, lines=4, read_vectors=1)  # 3 banks
LIST, LOG = 1000, 900  # vectors; a descriptor has 64 vectors, an entry of the log 4


def copy_job(**fields):
    """A job that copies a pixel of two channels: y = x, with the diagonal in word 0 of B."""
    return ListJob(**{
        **dict(
            panel_rows=2, out_height=1, out_width=1, columns=2, tile_words=1, kernel_height=1,
            kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1, low=-128,
            high=127,
        ),
        **fields,
    })


def address(vector):
    return split(vector, 3)


def memory_with(*descriptors, first=LIST, base=0):
    memory = np.zeros(CHIP.memory_bytes, np.uint8)
    data = b"".join(d if isinstance(d, bytes) else d.pack() for d in descriptors)
    at = 2 * (first + 3 * base)
    memory[at : at + len(data)] = np.frombuffer(data, np.uint8)
    return memory


def identity():
    """Buffers in which word 0 has 1 on its diagonal, and line 0 the scale 1 for both lanes."""
    buffers = NetworkCoreBuffers(CHIP)
    buffers.b[0] = np.eye(2)
    buffers.lines[0, :18] = 2 * [0, 0, 0, 0, 0, 0, 0, 64, 1]
    return buffers


def run(memory, buffers=None, **options):
    return run_list(
        CHIP, memory, address(LIST), address(LOG), buffers=buffers or identity(), **options
    )


@pytest.mark.parametrize("eager", [True, False])
def test_a_chain_of_loads_and_jobs(eager):
    one, two = (
        ListLoad(diagonal=1, fill=1, fill_value=v, words=1, jobs=n, first_word=0)
        for n, v in enumerate((1, 2))
    )
    memory = memory_with(
        one, copy_job(loads=1, input=address(5), output=address(6)),
        two, copy_job(loads=2, input=address(6), output=address(7)),
        ListLoad(words=1, source=address(5), first_word=1),
        ListEnd(result=address(6), result_bytes=3),
    )
    memory[10:16] = 20, 30, 99, 99, 99, 99
    assert run(memory, eager=eager) == ListOutcome(
        ListError.NONE, 2, bytes([20, 30, 40]), address(6)
    )
    assert memory[10:16].tolist() == [20, 30, 20, 30, 40, 60]


@pytest.mark.parametrize("eager", [True, False])
def test_resident_weights_and_lines(eager):
    """One list loads, another one computes."""
    buffers = NetworkCoreBuffers(CHIP)
    memory = memory_with(
        ListLoad(diagonal=1, fill=1, fill_value=1, words=1, first_word=0),
        ListLoad(target=LoadTarget.PARAMETERS, source=address(30), words=1, first_word=0),
        ListEnd(),
    )
    memory[60:78] = 2 * [0, 0, 0, 0, 0, 0, 0, 64, 1]
    assert run(memory, buffers, eager=eager) == ListOutcome(ListError.NONE, 0)
    memory = memory_with(copy_job(output=address(1)), ListEnd(result=address(1), result_bytes=2))
    memory[:2] = 7, 8
    assert run(memory, buffers, eager=eager).result == bytes([7, 8])


@pytest.mark.parametrize("eager", [True, False])
def test_a_loop(eager):
    """Each turn loads the factor of its job; the steps of the loop count from its first turn."""
    memory = memory_with(
        copy_job(input=address(60), output=address(61)),
        ListLoad(words=1, source=address(0), first_word=0, jobs=1),
        copy_job(loads=1, input=address(20), output=address(40)),
        ListLoop(
            times=3, body=2, body_loads=1, body_jobs=1, source_step=address(2),
            input_step=address(1), output_step=address(-2),
        ),
        copy_job(loads=3, input=address(20), output=address(50)),
        ListEnd(result=address(36), result_bytes=10),
    )
    # Words of B are diagonals with 1, 2, 3; the inputs are 10, 11; 12, 13; 14, 15.
    for word in range(3):
        memory[4 * word], memory[4 * word + 3] = word + 1, word + 1
    memory[40:46] = range(10, 16)
    memory[72:82] = 99
    assert run(memory, eager=eager) == ListOutcome(
        ListError.NONE, 5, bytes([42, 45, 99, 99, 24, 26, 99, 99, 10, 11]), address(36)
    )
    assert memory[100:102].tolist() == [30, 33]


def test_base_and_limit():
    options = dict(base=100, limit=700)
    memory = memory_with(
        copy_job(output=address(1)), ListEnd(result=address(1), result_bytes=2), base=100
    )
    memory[600:602] = 7, 8
    assert run(memory, **options).result == bytes([7, 8])
    last = 600 * 3 - 1
    for vector, error in ((-1, ListError.ADDRESS), (last, ListError.NONE),
                          (last + 1, ListError.ADDRESS)):
        memory = memory_with(copy_job(output=address(vector)), ListEnd(), base=100)
        assert run(memory, **options).error == error


def test_addresses_are_taken_modulo_twice_the_memory():
    memory = memory_with(copy_job(output=address(1 + 2 * 3072)), ListEnd())
    memory[:2] = 7, 8
    assert run(memory).error == ListError.NONE
    assert memory[2:4].tolist() == [7, 8]


def test_start_has_the_bits_of_an_address_that_the_hardware_keeps():
    memory = memory_with(copy_job(output=address(1)), ListEnd())
    for far in (2 << 18, -2 << 18, 4):  # of words 1024, and of 3 banks
        places = (address(LIST) + far & 0xFFFFFFFF, address(LOG) + far & 0xFFFFFFFF)
        outcome = run_list(CHIP, memory.copy(), *places, buffers=identity())
        assert outcome == ListOutcome(ListError.NONE, 1)


JOB, END = copy_job(output=address(9)), ListEnd()
OTHER_VERSION = bytes([0x14]) + bytes(127)


@pytest.mark.parametrize("error, jobs, descriptors", [
    (ListError.OPCODE, 1, [JOB, bytes(128)]),
    (ListError.OPCODE, 0, [OTHER_VERSION]),
    (ListError.OPCODE, 1, [JOB, END.pack()[:-1] + b"\1"]),
    (ListError.FIELD, 1, [JOB, copy_job(columns=0), END]),
    (ListError.FIELD, 0, [copy_job(panel_rows=3)]),
    (ListError.FIELD, 0, [copy_job(add_row_step=3)]),
    (ListError.FIELD, 0, [ListLoad(words=0)]),
    (ListError.FIELD, 0, [ListLoad(words=2, first_word=7)]),
    (ListError.FIELD, 0, [ListLoad(words=2, first_word=3, target=LoadTarget.PARAMETERS)]),
    (ListError.FIELD, 0, [ListLoad(words=2, first_word=511, target=LoadTarget.ADD_TABLE)]),
    (ListError.FIELD, 0, [ListLoad(words=2, target=3)]),
    (ListError.FIELD, 0, [ListLoad(words=2, source=3)]),
    (ListError.FIELD, 1, [JOB, ListLoop(times=0, body=1)]),
    (ListError.FIELD, 1, [JOB, ListLoop(times=2, body=0)]),
    (ListError.FIELD, 1, [JOB, ListLoop(times=2, body=1, source_step=255)]),
    (ListError.FIELD, 2, [JOB, JOB, ListLoop(times=2, body=3)]),
    (ListError.FIELD, 4, [JOB, JOB, ListLoop(times=2, body=2), ListLoop(times=2, body=1)]),
    (ListError.FIELD, 3, [JOB, ListLoop(times=2, body=1), JOB, ListLoop(times=2, body=2)]),
    (ListError.FIELD, 0, [ListEnd(result_bytes=1025)]),
    (ListError.FIELD, 0, [ListEnd(result=7)]),
    (ListError.ADDRESS, 0, [copy_job(output=address(3072))]),
    (ListError.ADDRESS, 1, [JOB, copy_job(input=address(-1))]),
    (ListError.ADDRESS, 0, [ListLoad(words=1, source=address(3071))]),
    (ListError.ADDRESS, 0, [ListEnd(result=address(3071), result_bytes=3)]),
    (ListError.DEADLOCK, 1, [JOB, ListLoad(words=1, jobs=2), copy_job(loads=1), END]),
    (ListError.DEADLOCK, 1, [JOB, ListLoad(words=1, jobs=2), END]),
    (ListError.DEADLOCK, 0, [copy_job(loads=1), END]),
])
def test_errors(error, jobs, descriptors):
    assert run(memory_with(*descriptors, END)) == ListOutcome(error, jobs)


def test_a_list_or_a_log_outside_the_memory_is_refused():
    memory = memory_with(JOB, END)
    for list_, log, error, jobs in (
        (address(3072 - 128), address(LOG), ListError.OPCODE, 0),
        (address(3072 - 1), address(LOG), ListError.ADDRESS, 0),
        (3, address(LOG), ListError.FIELD, 0),
        (address(LIST), address(3072 - 3), ListError.ADDRESS, 0),
        (address(LIST), 255, ListError.FIELD, 0),
    ):
        outcome = run_list(CHIP, memory, list_, log, buffers=identity())
        assert outcome == ListOutcome(error, jobs)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="memory must have 6144 bytes, not 10"):
        run(bytearray(10))
    with pytest.raises(ValueError, match=r"base and limit must be in 0\.\.1024"):
        run(memory_with(END), base=5, limit=4)


def test_a_bytearray_is_a_memory():
    case = random_job(np.random.default_rng(0), replace(CHIP, b_words=512, lines=64), add=False)
    memory = bytearray(case.image.memory.tobytes())
    number = case.image.take(128)
    memory[2 * number : 2 * number + 256] = replace(case.job).pack() + END.pack()
    log = case.image.take(4)
    outcome = run_list(
        case.buffers.config, memory, address(number), address(log), buffers=case.buffers
    )
    assert outcome.error == ListError.NONE
    case.image.memory[:] = memory
    y = case.layer.results("tflite")
    assert (case.image.read_map(case.output, y.shape) == y).all()
