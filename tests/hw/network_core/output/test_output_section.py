"""The output section: random jobs, against maps that are computed by multiplication."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_jobs import case_of
from network_core_layers import random_layer
from network_core_output import OutputBench, OutputCase, network_core_of, random_case
from side_port import hardware_address
from tiers import quick, tiers

from verif.amaranth_bench import put, simulate
from weft.hw.network_core.output.output_section import OutputSection
from weft.network_core import latencies

CHIPS = {
    "small": network_core_of(2, 2, 2, 1),
    "wide": network_core_of(3, 8, 2, 2, requantize="single"),
    "fip": network_core_of(3, 4, 8, 2, multiplier="fip"),
    "ecp5": network_core_of(4, 4, 4, 4, target="ecp5", scale_cycles=4),
    "row": network_core_of(1, 8, 4, 4, read_vectors=1, scale_cycles=2, requantize="single"),
    "slow": network_core_of(2, 4, 8, 4, scale_cycles=8),
    "product": network_core_of(2, 4, 4, 2, multiply_maps=True),
    "products": network_core_of(3, 4, 2, 2, multiply_maps=True, requantize="single"),
    "product-ecp5": network_core_of(
        1, 4, 4, 4, read_vectors=1, target="ecp5", scale_cycles=2, multiply_maps=True
    ),
    "onnx": network_core_of(3, 4, 4, 2, requantize="onnx", multiplier="fip"),
}
# Each option is in a quick one.
ALL = pytest.mark.parametrize(
    "config", tiers(CHIPS, "small", "wide", "slow", "product-ecp5", "onnx")
)


@ALL
@pytest.mark.parametrize("stall, gap", [pytest.param(0, 0, marks=pytest.mark.long), (0.5, 0.7)])
def test_maps_of_random_jobs(config, stall, gap):
    rng = np.random.default_rng(7)
    count = 5 if config.array.scale_cycles < 8 else 3
    cases = [
        random_case(rng, config, add=n % 3 == 1, sums=n % 3 == 0, base=n % 2) for n in range(count)
    ]
    OutputBench(config, cases, stall=stall, gap=gap).simulate()


def layer_case(rng, config, *, pixels, columns, kind):
    """A job with an output map of one row; ``kind`` is "plain", "add", "multiply" or "sums"."""
    add = kind in ("add", "multiply")
    layer = random_layer(
        rng, x=np.zeros((1, pixels, 1), np.int8), kind="point", add=add, sums=kind == "sums"
    )
    layer = replace(
        layer, weights=np.zeros((columns, 1, 1, 1), np.int8), bias=np.zeros(columns, int),
        shift=np.full(columns, -20), multiplier=np.full(columns, 1 << 30),
    )
    if add:
        scales = [*layer.addition.scales]
        if kind == "multiply":
            scales[2] = 1 << 30, -6
        layer = replace(layer, addition=replace(
            layer.addition, x=rng.integers(-128, 128, (1, pixels, columns)).astype(np.int8),
            scales=tuple(scales), multiply=kind == "multiply",
        ))
    return OutputCase(rng, case_of(rng, config, layer), 0)


KINDS = [
    *((name, kind) for name in ("small", "ecp5") for kind in ("plain", "add", "sums")),
    ("onnx", "plain"), ("product", "multiply"),
    *(pytest.param(name, kind, marks=pytest.mark.slow) for name, kind in (
        ("fip", "plain"), ("fip", "add"), ("fip", "sums"), ("onnx", "add"), ("onnx", "sums"),
        ("product", "add"), ("products", "multiply"), ("product-ecp5", "multiply"),
    )),
    *(pytest.param(name, "add", marks=pytest.mark.long) for name in ("products", "product-ecp5")),
]


@pytest.mark.parametrize("name, kind", KINDS)
def test_jobs_run_at_full_rate(name, kind):
    """Of two jobs, the longer one takes its chunks more, each with one, two or four slots."""
    config = CHIPS[name]
    rng = np.random.default_rng(8)
    core, pixels = config.array, (2 * config.array.rows, 6 * config.array.rows)
    cases = [layer_case(rng, config, pixels=n, columns=core.cols, kind=kind) for n in pixels]
    bench = OutputBench(config, [replace_panels(case, core.rows) for case in cases])
    bench.simulate()
    chunks = 4 * core.rows * config.row_chunks
    interval = core.scale_cycles * {"plain": 1, "add": 2, "multiply": 2, "sums": 4}[kind]
    assert bench.cycles[1] - bench.cycles[0] == chunks * interval


def replace_panels(case, rows):
    """The job with panels of ``rows`` pixels."""
    case.job = replace(case.job, panel_rows=rows)
    return case


@pytest.mark.parametrize("name, kind", [*KINDS, ("slow", "add")])
def test_a_job_of_one_chunk_takes_the_latency(name, kind):
    """From the row that is written to the cycle of the last write."""
    config = CHIPS[name]
    rng = np.random.default_rng(9)
    cases = [layer_case(rng, config, pixels=1, columns=1, kind=kind) for _ in range(2)]
    bench = OutputBench(config, cases, drain=20)
    bench.simulate()
    request = 1  # from the written row to the request
    latency = latencies.rescale(config)
    if kind in ("add", "multiply"):
        latency = latencies.rescale_total(config)
    if kind == "sums":
        parts = -(-4 // config.array.lanes)
        latency = latencies.store_sums(config.array) + (parts - 1) * config.array.scale_cycles
    assert bench.latencies == [request + latency] * 2


@pytest.mark.parametrize(
    "name", quick(3, ["small", "ecp5", "product", "fip", "onnx", "products", "product-ecp5"])
)
def test_a_job_follows_a_short_job_of_another_kind(name):
    """Sums are stored before they would be scaled; then nothing of them reaches the next job."""
    rng = np.random.default_rng(10)
    kinds = ["sums", "plain", "sums", "add", "plain", "sums", "plain"]
    if CHIPS[name].multiply_maps:
        kinds += ["add", "multiply", "multiply", "add", "plain", "multiply", "sums", "multiply"]
    cases = [layer_case(rng, CHIPS[name], pixels=1, columns=1, kind=kind) for kind in kinds]
    OutputBench(CHIPS[name], cases, drain=20).simulate()


@pytest.mark.parametrize("name, errors", [("add_input", 1), ("output", 1), ("input", 0)])
def test_an_access_beyond_the_limit_does_not_happen(name, errors):
    config = CHIPS["small"]
    dut = OutputSection(config, buffer_rows=4)
    found = []

    async def bench(ctx):
        put(ctx, dut.window.limit, 2)
        put(ctx, dut.job.fields[name], hardware_address(config, 2 * config.banks))
        put(ctx, dut.job.fields.add, int(name == "add_input"))
        put(ctx, dut.job.start, 1)
        put(ctx, dut.reads.request.ready, 1)
        await ctx.tick()
        put(ctx, dut.job.start, 0)
        for now in range(60):
            put(ctx, dut.tiles, {
                "valid": now == 0, "rows": 1, "cols": 1, "line": 0, "tile_last": 1, "last": 1,
            })
            put(ctx, dut.rows.row_written, now == 5)
            ports = dut.write.valid, dut.reads.request.valid, dut.address_error
            found.append(list((await ctx.tick().sample(*ports))[2:]))

    simulate(dut, bench)
    assert [sum(column) for column in zip(*found, strict=True)] == [1 - errors, 0, errors]
