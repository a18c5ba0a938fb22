"""The cycle model of the micro core against the simulated one: tiles of all kinds."""

import numpy as np
import pytest
from network_cores import MICRO, MICRO_LOGIC
from tiers import quick, tiers

from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import ListEnd, ListJob, split
from weft.sim.network_core import NetworkSimulation

LIST, LOG, MAPS = 0, 192, 256  # vectors

# The columns of a tile decide how long the next one waits: in all, and of the last tile of a pixel.
COLUMNS = 1, 4, 5, 8, 9, 10, 11, 13, 18


@pytest.fixture(
    scope="module", params=[MICRO, pytest.param(MICRO_LOGIC, marks=pytest.mark.long)],
    ids=lambda config: config.target,
)
def core(request):
    with NetworkSimulation(request.param) as simulation:
        yield simulation


def layer(columns, kernel, vectors, **fields):
    """A job with 2 x 3 pixels; some of its taps lie outside the map."""
    fields |= {name: split(MAPS, 1) for name in ("input", "output", "add_input")}
    return ListJob(
        panel_rows=1, out_height=2, out_width=3, columns=columns, tile_words=kernel * vectors,
        kernel_height=1, kernel_width=kernel, tap_vectors=vectors, group_tiles=2, in_height=2,
        in_width=2, stride_y=1, stride_x=1, dilation_y=1, dilation_x=1,
        output_pixel_step=split(8, 1), output_row_step=split(8, 1), **fields,
    )


@pytest.mark.parametrize("columns", quick(4, COLUMNS))
@pytest.mark.parametrize("fields", [{}, {"add": 1}, {"sums": 1}], ids=["plain", "add", "sums"])
def test_tiles_of_all_lengths(core, columns, fields):
    for kernel, vectors in [(1, n) for n in (1, 2, 3, 7)] + [(2, n) for n in range(3, 20)]:
        descriptors = [layer(columns, kernel, vectors, **fields), ListEnd()]
        check(core, descriptors)


def check(core, descriptors):
    """Compare the log and the cycles of a list with the cycle model."""
    core.write(b"".join(descriptor.pack() for descriptor in descriptors))
    outcome = core.run(LIST, LOG)
    times = np.frombuffer(core.read()[4 * LOG :][: 8 * (len(descriptors) - 1)], "<u4")
    found = predict_list(core.config, descriptors, split(LIST, 1), split(LOG, 1))
    assert outcome.finished and not outcome.error
    assert (found.jobs, found.cycles) == (
        tuple(map(tuple, times.reshape(-1, 2).tolist())), outcome.cycles
    )


@pytest.mark.parametrize("fields", tiers(
    {"plain": {}, "add": {"add": 1}, "sums": {"sums": 1}}, "plain", "add"
))
def test_parts_of_all_lengths(core, fields):
    """Also of several pixels and tiles, whose sums are one."""
    for columns in (1, 4, 9):
        for vectors in range(1, 20, 3):
            part, last = (
                layer(columns, 1, vectors, partial=partial, **fields) for partial in (1, 0)
            )
            check(core, [last, part, part, last, ListEnd()])
