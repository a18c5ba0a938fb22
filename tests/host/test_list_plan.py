"""The plan of a product on a network core: its blocks, its lists, and what these load."""

import numpy as np
import pytest
from network_cores import PROGRAM, network_core_config

from weft.host import list_plan
from weft.host.list_plan import ListPlan, ProductSpace, block_sizes
from weft.host.packing import ENTRY
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, LoadTarget, split, unpack_list

CHIP = network_core_config(2, 4, 4, 2, words=1024, b_words=64, lines=16, read_vectors=2)
OLD, NEW = (9, False), (3, True)  # places of B and of parameters


def plan_of(config, m, k, n, entries=None):
    space = ProductSpace(5, 1000, 8, 1000 if config.program_words else 0)
    b = np.random.default_rng(1).integers(-128, 128, (n, k)).astype(np.int8)
    return b, space, ListPlan(config, space, m, b, entries)


@pytest.mark.parametrize("config", [CHIP, PROGRAM], ids=["memory", "program memory"])
@pytest.mark.parametrize("places", [(OLD, OLD), (NEW, OLD), (OLD, NEW), (NEW, NEW)])
def test_a_list_loads_what_is_not_in_the_buffers(config, places):
    b, space, plan = plan_of(config, 6, 10, 7)
    blocks, banks, depth = block_sizes(config, 6, 10, 7, 4, space), config.banks, 4
    [part] = plan.parts
    *loads, job, end = unpack_list(part.list_for(places))
    assert part.list_for(places) is part.list_for(places)
    first = (space.program_first if config.program_words else space.first) + blocks.source
    wanted = []
    for loaded, target, (place, new) in zip(
        part.loaded, (LoadTarget.B, LoadTarget.PARAMETERS), places, strict=True
    ):
        assert loaded.target == target
        if new:
            wanted.append(ListLoad(
                target=target, source=split(first, banks), first_word=place, words=loaded.words
            ))
            first += len(loaded.data) // depth
    assert loads == wanted
    assert isinstance(job, ListJob) and (job.loads, job.sums) == (len(loads), 1)
    assert (job.b_word, job.parameter_line) == (places[0][0], places[1][0])
    assert job.input == split(space.first + blocks.a, banks)
    assert job.output == end.result == split(space.first + blocks.output, banks)
    assert isinstance(end, ListEnd) and end.result_bytes == part.result_bytes == 6 * 7 * 4
    # The words of B, without the padding of 2 values of K and of the last tile.
    cols, tiles = config.array.cols, -(-7 // config.array.cols)
    words = np.frombuffer(part.loaded[0].data, np.int8).reshape(tiles, 3, cols, depth)
    whole = words.transpose(0, 2, 1, 3).reshape(tiles * cols, 12)
    assert (whole[:7, :10] == b).all() and not whole[7:].any() and not whole[:, 10:].any()


def test_large_results_are_not_in_done():
    [part] = plan_of(CHIP, 20, 4, 13)[2].parts
    assert part.result_bytes == 20 * 52 > 1024
    assert unpack_list(part.list_for((OLD, OLD)))[-1].result_bytes == 0


def test_few_lists_are_kept():
    [part] = plan_of(CHIP, 2, 4, 4)[2].parts
    found = [part.list_for(((word, False), OLD)) for word in range(12)]
    assert len({*found}) == 12 and len(part._lists) <= list_plan._MAX_LISTS
    assert [part.list_for(((word, False), OLD)) for word in range(12)] == found


def test_columns_with_other_limits_are_other_parts():
    entries = np.zeros(6, ENTRY)
    entries["low"], entries["high"] = [-9, -9, -9, -9, -9, 3], [7, 7, 5, 7, 5, 200]
    entries["zero"][5] = 130
    _, _, plan = plan_of(CHIP, 3, 8, 6, entries)
    jobs = {
        tuple(part.columns.tolist()): unpack_list(part.list_for((OLD, OLD)))[0]
        for part in plan.parts
    }
    assert {where: (job.zero, job.low, job.high) for where, job in jobs.items()} == {
        (2, 4): (0, -9, 5), (0, 1, 3): (0, -9, 7), (5,): (2, -125, 72),
    }
    assert plan.offset.tolist() == [0, 0, 0, 0, 0, 128] and not plan.sums
