"""Lists of a core with two memories: list, log and each load in one or the other, with any base."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_lists import random_list
from network_cores import PROGRAM, PROGRAM_ROW
from network_duel import compare_memories
from tiers import tiers

from weft.golden.network_core import run_list
from weft.network_core.cycles import ProgramTiming, predict_list
from weft.network_core.descriptors import (
    ON_CHIP,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    LoadTarget,
    NetworkState,
    join,
    split,
)
from weft.sim.network_core import AxiTiming, NetworkSimulation

SIZES = dict(
    layers=2, most_pixels=9, most_kernel=2, most_channels=6, most_turns=1, resident=0, parts=0.2
)
TIMING = ProgramTiming(19, 700)


@pytest.fixture(scope="module", params=tiers(
    {"2x2x4": PROGRAM, "1x4x4": PROGRAM_ROW}, "2x2x4"
))
def core(request):
    with NetworkSimulation(request.param) as simulation:
        simulation.set_timing(AxiTiming(TIMING.latency, TIMING.period))
        yield simulation


def places_of(rng, config, case, on_chip, moved):
    """The list of a case with its loads in both memories; returns it, and both memories.

    ``on_chip``: the list stays where it is; else it moves to the program memory, as each load does
    with the probability ``moved``.
    """
    depth, banks = config.array.depth, config.banks
    memory = case.image.memory.copy().reshape(-1, depth)
    program = rng.integers(-128, 128, (config.program_bytes // depth, depth), np.int8)
    first, base, entries = 0, case.base * banks, []

    def place(vectors):
        nonlocal first
        first += config.read_vectors * int(rng.integers(3))
        at, first = first, first - -len(vectors) // config.read_vectors * config.read_vectors
        program[at : at + len(vectors)] = vectors
        return at

    for entry in case.descriptors:
        if isinstance(entry, ListLoad):
            number = base + join(entry.source, banks)
            if config.int4 and entry.target == LoadTarget.B and not entry.diagonal:
                entry = replace(entry, packed=int(rng.integers(2)))  # any bytes are weights
            data = memory[number : number + entry.vectors(config)]
            if rng.random() < moved:
                entry = replace(entry, source=split(place(data), banks))
            else:
                entry = replace(entry, on_chip=1)
        entries.append(entry)
    data = np.frombuffer(b"".join(entry.pack() for entry in entries), np.int8).reshape(-1, depth)
    if on_chip:
        number = base + join(case.list_address, banks)
        memory[number : number + len(data)] = data
        places = case.list_address | ON_CHIP, case.log_address
    else:
        places = split(place(data), banks), split(len(program) - 2 * case.jobs - 8, banks)
    return entries, places, memory.reshape(-1), program.reshape(-1)


@pytest.mark.parametrize("on_chip", [True, False], ids=["list on chip", "list in program memory"])
@pytest.mark.parametrize("moved", [0, 0.5])
def test_results_and_cycles(core, on_chip, moved):
    config, rng, compared = core.config, np.random.default_rng(7), 0
    for number in range(20):
        base = int(rng.integers(30))
        try:
            case = random_list(
                rng, replace(config, program_words=0), base=base, limit=config.words - 3, **SIZES
            )
        except MemoryError:
            continue
        entries, places, memory, program = places_of(rng, config, case, on_chip, moved)
        window = {"base": case.base, "limit": case.limit}
        core.write(memory.tobytes())
        core.write_program(program.tobytes())
        list_address, log_address = places
        outcome = core.run(
            join(list_address & ~ON_CHIP, config.banks), join(log_address, config.banks),
            on_chip=on_chip, **window,
        )
        assert (outcome.state, outcome.error) == (NetworkState.DONE, ListError.NONE), number
        predicted = predict_list(config, entries, *places, timing=TIMING)
        assert outcome.cycles == predicted.cycles, number
        expected = run_list(
            config, memory, *places, program=program, eager=bool(number % 2), **window
        )
        assert (expected.error, expected.jobs) == (ListError.NONE, case.jobs)
        log = join(case.log_address, config.banks) + case.base * config.banks
        compare_memories(config, core.read(), memory, log, case.jobs if on_chip else 0)
        data = core.read(log, 2) if on_chip else core.read_program(
            join(log_address, config.banks) * config.array.depth, 8
        )
        assert tuple(np.frombuffer(data[:8], "<u4")) == predicted.jobs[0]
        compared += 1
        if compared == 3:
            break
    assert compared == 3


JOB = ListJob(
    panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1, kernel_height=1,
    kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1, stride_y=1, stride_x=1,
)


@pytest.mark.parametrize("source, fits", [(0, True), (1, True), (-1, False), (29, False)])
@pytest.mark.parametrize("target", [0, 1])
def test_a_load_from_the_chip_stays_in_the_window(core, source, fits, target):
    """The window has 10 words of 3 banks; a load has 2 vectors, or more for a line."""
    config = core.config
    load = ListLoad(on_chip=1, words=1, target=target, source=split(source, config.banks))
    data = b"".join(entry.pack() for entry in (load, replace(JOB, loads=1), ListEnd()))
    memory, program = bytearray(config.memory_bytes), bytearray(config.program_bytes)
    program[: len(data)] = data
    core.write(bytes(memory))
    core.write_program(bytes(program))
    outcome = core.run(0, 200, base=5, limit=15)
    expected = run_list(config, memory, 0, split(200, config.banks), base=5, limit=15,
                        program=program)
    assert outcome.error == expected.error == (ListError.NONE if fits else ListError.ADDRESS)
    assert outcome.job == expected.jobs == int(fits)


@pytest.mark.parametrize("place", ["list", "log"])
def test_a_list_on_the_chip_stays_in_the_window(core, place):
    config = core.config
    data = b"".join(entry.pack() for entry in (JOB, ListEnd()))
    vectors = len(data) // config.array.depth
    words = -(-(vectors + 2) // config.banks)
    first = words * config.banks - 2 - vectors + (place == "list")
    log = first + vectors - 1 + (place == "log") * 2 if place == "log" else 0
    memory = bytearray(config.memory_bytes)
    start = (5 * config.banks + first) * config.array.depth
    memory[start : start + len(data)] = data
    core.write(bytes(memory))
    limit = 5 + words - (place == "list")
    places = split(first, config.banks), split(log, config.banks)
    outcome = core.run(first, log, base=5, limit=limit, on_chip=True)
    expected = run_list(
        config, memory, places[0] | ON_CHIP, places[1], base=5, limit=limit,
        program=bytearray(config.program_bytes),
    )
    assert outcome.error == expected.error == (
        ListError.ADDRESS if place == "list" or log + 2 > words * config.banks else ListError.NONE
    )
