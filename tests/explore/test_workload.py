"""Workloads: cycles equal the cycle model's, and Configs of equal timing share them."""

import dataclasses

import numpy as np
import pytest
from explore_points import network_core
from network_core_networks import NetworkBuilder
from network_cores import MICRO

import weft
from weft.cli.info import cycle_counts
from weft.commands import epilogue_flags
from weft.config import Config
from weft.explore import workload
from weft.explore.workload import MatrixWorkload, NetworkWorkload, rough_lists, workload_of
from weft.models.errors import ModelError, UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import NetworkTarget

CONFIG = Config(target="ecp5", rows=4, cols=4, depth=4, lanes=2, activation="none", dsp_cols=1,
                a_words=512, b_words=512)


@pytest.fixture(scope="module")
def digits():
    return weft.load("examples/digits_cnn.tflite")


def test_a_product_costs_what_the_cycle_model_says():
    made = workload_of("40x64x24")
    cost = made.cost(CONFIG)
    flags = epilogue_flags(CONFIG)[0]
    cold, _, steady = cycle_counts(CONFIG, 40, 64, 24, flags)
    assert cost.interval == steady
    assert cost.cycles >= cold  # it counts the header, too
    assert cost.macs == 40 * 64 * 24
    assert cost.sent > 40 * 64 + 64 * 24 and cost.received > 40 * 24
    assert made.products(CONFIG) == [(40, 64, 24, 1)]


def test_a_network_costs_what_its_program_says(digits):
    made = NetworkWorkload(digits)
    program = digits.compile(CONFIG)
    cost = made.cost(CONFIG)
    assert cost.cycles == cost.interval == program.estimate.cycles
    assert cost.macs == sum(step.macs for step in program.steps if step.placement.on_weft)
    assert cost.energy > 0
    assert made.products(CONFIG) == [
        (each.m, each.k, each.n, each.count) for step in program.steps for each in step.products
    ]


def test_configs_of_equal_timing_share_their_cycles(digits, monkeypatch):
    made, compiled = NetworkWorkload(digits), []
    compile_network = digits.compile
    monkeypatch.setattr(
        digits, "compile", lambda config: compiled.append(config) or compile_network(config)
    )
    costs = [made.cost(dataclasses.replace(CONFIG, dsp_cols=count)) for count in range(5)]
    assert len(set(costs)) == len(compiled) == 1
    workload._matrix_cost.cache_clear()
    for count in range(5):
        MatrixWorkload(8, 8, 8).cost(dataclasses.replace(CONFIG, dsp_cols=count))
    assert workload._matrix_cost.cache_info().misses == 1


def test_the_cycles_do_not_depend_on_dsp_cols(digits):
    cycles = {
        digits.compile(dataclasses.replace(CONFIG, dsp_cols=count)).estimate.cycles
        for count in (0, 2, 4)
    }
    assert len(cycles) == 1


CHIP = network_core(rows=3, cols=4, depth=4, words=512)


def test_a_network_costs_what_its_program_says_on_a_core_for_networks(digits):
    made, program = NetworkWorkload(digits), digits.compile(CHIP)
    cost = made.cost(CHIP)
    assert cost.cycles == cost.interval == program.cycles
    assert cost.memory == program.memory_used
    assert cost.macs == sum(step.macs for step in program.layers)
    assert (cost.sent, cost.received) == digits.report(CHIP).link


@pytest.mark.parametrize("buffers, kept, fitting", [
    ({"b_words": 64, "lines": 16}, False, [1024, 4096]),
    ({"b_words": 4096, "lines": 1024}, True, [1024, 4096]),
])
def test_cores_that_differ_in_words_share_their_cycles(digits, monkeypatch, buffers, kept, fitting):
    """Weights that stay are loaded in one part wherever the program fits."""
    made, compiled = NetworkWorkload(digits), []
    compile_network = digits.compile
    monkeypatch.setattr(
        digits, "compile", lambda config: compiled.append(config) or compile_network(config)
    )
    small = network_core(rows=3, cols=4, depth=4, words=1024, read_vectors=2, **buffers)
    least = made.cost(small).memory
    found = [words for words in (512, 1024, 4096) if words * 4 * small.banks >= least]
    for words in found:
        config = dataclasses.replace(small, words=words)
        program = compile_network(config)
        assert bool(program.setup) == kept
        assert (made.cost(config).cycles, made.cost(config).memory) == (
            program.cycles, program.memory_used
        )
    other = dataclasses.replace(small, array=dataclasses.replace(small.array, dsp_cols=3))
    assert made.cost(other) == made.cost(small)
    assert len(compiled) == 1 and found == fitting


def test_a_small_memory_loads_weights_that_stay_in_more_parts(digits):
    made = NetworkWorkload(digits)
    large = network_core(
        rows=3, cols=4, depth=4, words=4096, read_vectors=2, b_words=4096, lines=1024
    )
    small = dataclasses.replace(large, words=512)
    program = digits.compile(small)
    assert len(program.setup) > len(digits.compile(large).setup) == 1
    assert made.cost(small).memory == program.memory_used < made.cost(large).memory


def test_a_network_that_does_not_fit_is_refused_each_time(digits):
    made = NetworkWorkload(digits)
    kept = dataclasses.replace(CHIP, words=16)  # weights stay in the buffers
    loaded = dataclasses.replace(kept, b_words=64, lines=16)
    for tiny in (kept, loaded, kept, loaded):
        with pytest.raises(UnfitError, match="the memory must have .* bytes"):
            made.cost(tiny)


def test_the_rough_cycles_of_a_core_for_networks_are_close(digits):
    made = NetworkWorkload(digits)
    for config in (
        CHIP, network_core(rows=6, lanes=4, words=512), network_core(rows=1, cols=8, words=2048)
    ):
        assert made.quick_cycles(config) == pytest.approx(made.cost(config).cycles, rel=0.2)
        assert made.least_memory(config) <= made.cost(config).memory


def test_a_step_takes_a_rough_cycle_with_one_port():
    """A tile has 72 steps, which take longer than its results; rough cycles have no control."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 12, 12, 32))
    builder.convolution(0, 8)
    graph = builder.graph()
    program = compile_network_core(graph, NetworkTarget("micro", MICRO, 36, 1_000_000))
    assert rough_lists(graph, MICRO.array).cycles(MICRO) == pytest.approx(program.cycles, rel=0.2)


def test_a_product_needs_a_core_for_products():
    with pytest.raises(ModelError, match=(
        "^workload must be a network .* on a network core, not the product 8x8x8$"
    )):
        MatrixWorkload(8, 8, 8).cost(CHIP)


def test_a_program_is_no_workload(digits, tmp_path):
    digits.compile(CONFIG).save(tmp_path / "digits.weft")
    with pytest.raises(ModelError, match=r"workload must be MxKxN, .tflite or .onnx, not the prog"):
        workload_of(str(tmp_path / "digits.weft"))
    with pytest.raises(FileNotFoundError):
        workload_of("0x4x4")
