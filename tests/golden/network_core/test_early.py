"""Jobs that start early in the golden model: it refuses those that may read before a store."""

from dataclasses import replace

import numpy as np
import pytest

from weft.config import Config
from weft.golden.network_core import NetworkCoreBuffers, run_list
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListEnd, ListError, ListJob, split

CORE = Config(rows=2, cols=2, depth=2, lanes=2, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(
    array=CORE, words=1024, b_words=8, lines=4, read_vectors=1, softmax=True, early=True
)
LIST, LOG = 1000, 900
FREE = -CHIP.vectors


def address(vector):
    return split(vector, CHIP.banks)


def copy(source, output, *, step=1, output_step=1, **fields):
    """A job that copies 8 pixels of a vector, in panels of 2."""
    return ListJob(**{
        **dict(
            panel_rows=2, cross=1, out_height=1, out_width=8, columns=2, tile_words=1,
            kernel_height=1, kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=8,
            stride_x=1, low=-128, high=127, input=address(source), output=address(output),
            input_pixel_step=address(step), output_pixel_step=address(output_step),
        ),
        **fields,
    })


def early(job, span):
    return replace(job, early=1, span=address(span))


def run(*jobs):
    """The outcome, and the vectors from 40 on."""
    memory = np.zeros(CHIP.memory_bytes, np.uint8)
    data = b"".join(entry.pack() for entry in (*jobs, ListEnd()))
    memory[2 * LIST : 2 * LIST + len(data)] = np.frombuffer(data, np.uint8)
    memory[40:56] = range(1, 17)  # vectors 20 to 27
    buffers = NetworkCoreBuffers(CHIP)
    buffers.b[0] = np.eye(2)
    buffers.lines[0, :18] = 2 * [0, 0, 0, 0, 0, 0, 0, 64, 1]
    outcome = run_list(CHIP, memory, address(LIST), address(LOG), buffers=buffers)
    return outcome, memory[80:].reshape(-1, 2)


FIRST = copy(20, 40)
# Two taps: the pixel and the one after it; the second word of B is 0.
WIDE = copy(
    40, 60, tile_words=2, kernel_width=2, dilation_x=1, tap_x_step=address(1),
    input_row_step=address(1),
)


@pytest.mark.parametrize("second, span", [
    (copy(40, 60), 0), (copy(40, 60), 50), (WIDE, 1), (copy(20, 60), FREE), (copy(20, 60), 0),
    # Panel 0 reads pixels 0 and 2, panel 1 reads 4 and 6: the others are not read.
    (copy(40, 60, step=2, out_width=4), 0),
])
def test_a_job_that_waits_for_what_it_reads(second, span):
    plain, expected = run(FIRST, second)
    outcome, found = run(FIRST, early(second, span))
    assert outcome == plain
    assert outcome.error == ListError.NONE
    assert np.array_equal(found[20:30], expected[20:30])


@pytest.mark.parametrize("second, span", [
    (WIDE, 0), (copy(40, 60), -2), (copy(40, 60), FREE),
    # The last pixel of a panel has the lowest address.
    (copy(46, 60, step=-1, out_width=6), 0),
])
def test_a_job_that_may_read_a_vector_before_it_is_stored_is_refused(second, span):
    assert run(FIRST, second)[0].error == ListError.NONE
    with pytest.raises(ValueError, match=r"span of a job with early must be the largest step"):
        run(FIRST, early(second, span))


def test_a_map_that_is_stored_from_its_end_on():
    """Its frontier falls: the first panel passes although nothing of what it reads is stored."""
    falling = copy(20, 47, output_step=-1)
    assert run(falling, copy(40, 60))[0].error == ListError.NONE
    with pytest.raises(ValueError, match="its panel 0 may pass before panel 3"):
        run(falling, early(copy(40, 60), 0))
    # In front of the frontier, which has its smallest value with the last panel.
    assert run(falling, early(copy(40, 60), 8))[0].error == ListError.NONE


def test_a_job_before_without_stores():
    partial = replace(copy(20, 40, out_width=2), partial=1)
    assert run(partial, early(copy(20, 60, out_width=2), FREE))[0].error == ListError.NONE


@pytest.mark.parametrize("flag", ["partial", "softmax"])
def test_jobs_that_never_start_early(flag):
    outcome, _ = run(FIRST, replace(early(copy(40, 60), 0), **{flag: 1}))
    assert (outcome.error, outcome.jobs) == (ListError.FIELD, 1)
