"""Jobs of the golden model of a network core: all fields, against direct convolutions."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_jobs import bank_conflicts, case_of, parts_of, random_job
from network_core_layers import LayerAddition, NetworkCoreLayer
from network_cores import MICRO, network_core_config
from tiers import quick

from weft.golden.network_core import NetworkCoreBuffers
from weft.golden.network_core.job import run_job
from weft.golden.network_core.memory import ListFault, MemoryArea
from weft.models.kernels.tflite import KERNELS as ARITHMETIC
from weft.models.kernels.tflite import KERNELS as POOLS
from weft.network_core.descriptors import ListError, ListJob, split


def network_core(rows, cols, depth, lanes, **fields):
    defaults = {"words": 512, "b_words": 1024, "lines": 64, "multiplier": "plain"}
    return network_core_config(rows, cols, depth, lanes, **defaults | fields)


CHIPS = [
    network_core(2, 2, 2, 1, read_vectors=2),
    network_core(3, 2, 4, 2, multiplier="fip", read_vectors=1),
    network_core(4, 4, 4, 4, multiplier="fip", requantize="single"),
    network_core(8, 8, 2, 2),
    network_core(1, 16, 4, 4),
    network_core(2, 4, 4, 2, multiply_maps=True),
    network_core(3, 4, 8, 2, multiplier="fip", requantize="onnx"),
]
ALL = pytest.mark.parametrize(
    "config", CHIPS, ids=lambda c: f"{c.array.rows}x{c.array.cols}-{c.array.requantize}"
)
X = np.arange(72, dtype=np.int8).reshape(3, 3, 8)


def run(case, base=0):
    config = case.buffers.config
    run_job(
        config, MemoryArea(config, case.image.memory, base, config.words), case.buffers, case.job
    )


@ALL
def test_random_layers_equal_direct_convolutions(config):
    rng = np.random.default_rng(18)
    for _ in range(60):
        base = int(rng.integers(5))
        case = random_job(rng, config, base=base)
        expected = case.image.vectors().copy()
        layer = case.layer
        y = layer.results(config.array.requantize)
        run(case, base)
        assert (case.image.read_map(case.output, y.shape) == y).all(), case.job
        # No other byte has changed.
        expected[case.image.map_index(case.output, y.shape)] = y
        assert (case.image.vectors() == expected).all(), case.job


@ALL
def test_random_jobs_have_no_bank_conflict(config):
    rng = np.random.default_rng(19)
    jobs = [random_job(rng, config).job for _ in range(60)]
    assert [bank_conflicts(config, job) for job in jobs] == [[]] * len(jobs)
    if config.array.rows > 2:
        assert {job.cross for job in jobs} == {0, 1}


def test_a_bank_conflict_is_found():
    config = CHIPS[2]  # 5 banks
    case = random_job(np.random.default_rng(1), config, kind="point", most_pixels=6)
    job = replace(
        case.job, out_height=1, out_width=3, in_height=1, in_width=3, panel_rows=3, cross=0,
        input_pixel_step=split(5, 5),
    )
    assert bank_conflicts(config, job) == [(0, 0, 0)]
    assert bank_conflicts(config, replace(job, in_width=1)) == []  # only one pixel is read


def test_a_job_by_hand():
    """A kernel of 1 x 2 over a map of 1 x 2 pixels with 3 channels, N = 3, padding right."""
    config = network_core(2, 2, 4, 2, words=16, lines=8, read_vectors=1)  # 3 banks
    memory = np.full(config.memory_bytes, 99, np.int8)
    memory[0:3], memory[8:11] = (1, 2, 3), (-4, 5, -6)  # pixels are 2 vectors apart
    buffers = NetworkCoreBuffers(config)
    # Columns 0 to 2 of taps 0 and 1; the unused channel has the weight 0.
    buffers.b[10:12, 0] = [[1, 1, 1, 0], [0, 0, 1, 0]]
    buffers.b[10:12, 1] = [[2, 0, 0, 0], [0, 3, 0, 0]]
    buffers.b[12:14, 0] = [[0, 0, -1, 0], [1, 0, 0, 0]]
    half = [0, 0, 0, 64, 0]  # 2^30 * 2^-31, shift 0
    buffers.lines[5, :18] = [10, 0, 0, 0, *half, 0, 0, 0, 0, *half]
    buffers.lines[6, :9] = [-1, -1, -1, -1, *half]
    run_job(config, MemoryArea(config, memory, 0, 16), buffers, ListJob(
        panel_rows=2, out_height=1, out_width=2, columns=3, tile_words=2, kernel_height=1,
        kernel_width=2, tap_vectors=1, group_tiles=2, in_height=1, in_width=2, stride_y=1,
        stride_x=1, dilation_y=1, dilation_x=1, input=split(0, 3), input_pixel_step=split(2, 3),
        tap_x_step=split(2, 3), b_word=10, b_step=2, parameter_line=5, output=split(20, 3),
        output_pixel_step=split(1, 3), outside=7, zero=-1, low=-5, high=20,
    ))
    # Pixel 0: 1 + 2 + 3 - 6 = 0; 2 * 1 + 3 * 5 = 17; -3 - 4 = -7. Biases 10, 0, -1; half of it:
    # 5, 8.5 up to 9, -4. Zero point -1. Pixel 1: -5 + 7 = 2; -8 + 21 = 13; 6 + 7 = 13.
    assert memory[80:88].tolist() == [4, 8, -5, 99, 5, 6, 5, 99]
    assert (np.delete(memory, [*range(80, 83), *range(84, 87), 0, 1, 2, 8, 9, 10]) == 99).all()


def test_sums_by_hand():
    """Two pixels of 2 channels, N = 3: pixels of 12 bytes; the sums wrap at 32 bits."""
    # 3 banks
    config = network_core(2, 2, 4, 2, multiplier="fip", words=16, lines=8, read_vectors=1)
    memory = np.full(config.memory_bytes, 99, np.int8)
    memory[0:4], memory[4:8] = (1, -128, 0, 0), (3, 4, 0, 0)
    buffers = NetworkCoreBuffers(config)
    buffers.b[0] = [[1, 2, 0, 0], [-128, 5, 0, 0]]
    buffers.b[1, 0] = [-1, 0, 0, 0]
    # The biases are 10, -1 and 2^31 - 1, less the pair sums 2, -640 and 0 of the columns.
    buffers.lines[0, 0:4], buffers.lines[0, 9:11] = (8, 0, 0, 0), (127, 2)
    buffers.lines[1, 0:4] = (-1, -1, -1, 127)
    run_job(config, MemoryArea(config, memory, 0, 16), buffers, ListJob(
        sums=1, panel_rows=2, out_height=1, out_width=2, columns=3, tile_words=1, kernel_height=1,
        kernel_width=1, tap_vectors=1, group_tiles=2, in_height=1, in_width=2, stride_y=1,
        stride_x=1, dilation_y=1, dilation_x=1, input=split(0, 3), input_pixel_step=split(1, 3),
        b_step=1, output=split(10, 3), output_pixel_step=split(4, 3), low=-1, high=1,
    ))
    # Pixel 0: 1 - 256 + 10; -128 - 640 - 1; -1 + 2^31 - 1. Pixel 1: 3 + 8 + 10; -384 + 20 - 1;
    # -3 + 2^31 - 1.
    found = [memory[at : at + 12].view("<i4").tolist() for at in (40, 56)]
    assert found == [[-245, -769, 2**31 - 2], [21, -365, 2**31 - 4]]
    assert (memory[[*range(8, 40), *range(52, 56), *range(68, 72)]] == 99).all()


@pytest.mark.parametrize("fields", [
    dict(input=split(-1, 5)), dict(output=split(512 * 5, 5)), dict(add_input=split(-4, 5)),
    dict(group_step=split(-400 * 5, 5)),
])
def test_wrong_addresses_are_refused_before_a_store(fields):
    config = CHIPS[2]
    case = random_job(
        np.random.default_rng(3), config, kind="depthwise", add=True, most_kernel=1, x=X
    )
    case = replace(case, job=replace(case.job, first_y=0, first_x=0, **fields))
    before = case.image.memory.copy()
    with pytest.raises(ListFault) as fault:
        run(case)
    assert fault.value.error == ListError.ADDRESS
    assert (case.image.memory == before).all()


@pytest.mark.parametrize("fields, text", [
    (dict(tile_words=7), r"tile_words of a job must be all steps of a tile \(4\), not 7"),
    (dict(b_word=1023), "words of B of a job must be at most 1024, not 1027"),
    (dict(low=3, high=2), r"low of a job must be at most high \(2\), not 3"),
    (dict(out_height=300, stride_y=250, input_row_step=0, input_pixel_step=0),
     "the largest y of a job must be at most 65535, not 74751"),
    (dict(parameter_line=64), r"lines of a job must be in 0\.\.63, not 64\.\.65"),
])
def test_undefined_fields_are_refused(fields, text):
    case = random_job(np.random.default_rng(4), CHIPS[2], kind="point", add=False, x=X)
    job = replace(case.job, kernel_height=2, tile_words=4, columns=8, b_step=0)
    with pytest.raises(ValueError, match=text):
        run(replace(case, job=replace(job, **fields)))


@pytest.mark.parametrize("side", ["in_height", "in_width"])
def test_a_map_of_a_core_with_a_microprogram_has_at_most_32768_rows_and_columns(side):
    case = random_job(np.random.default_rng(6), MICRO, kind="point", add=False, x=X)
    run(replace(case, job=replace(case.job, **{side: 32768})))
    with pytest.raises(ValueError, match=f"{side} of a job must be at most 32768, not 32769"):
        run(replace(case, job=replace(case.job, **{side: 32769})))


@pytest.mark.parametrize(
    "config", quick(3, CHIPS[::-1]), ids=lambda c: f"{c.array.rows}x{c.array.cols}"
)
def test_parts_equal_direct_convolutions(config):
    rng, partial = np.random.default_rng(19), 0
    for _ in range(30):
        case = random_job(rng, config, kind="conv")
        memory, sums = MemoryArea(config, case.image.memory, 0, config.words), None
        parts = [job for _, job in parts_of(rng, config, case.job)]
        for job in parts:
            before = case.image.memory.copy()
            sums = run_job(config, memory, case.buffers, job, sums)
            assert (sums is not None) == job.partial
            if job.partial:
                assert (case.image.memory == before).all()
        y = case.layer.results(config.array.requantize)
        if parts:
            np.testing.assert_array_equal(case.image.read_map(case.output, y.shape), y)
        partial += sum(job.partial for job in parts)
    assert partial > 30


def test_the_sums_of_parts_wrap():
    config = network_core(2, 2, 4, 2, multiplier="fip", words=16, lines=8, read_vectors=1)
    memory, buffers = np.zeros(config.memory_bytes, np.int8), NetworkCoreBuffers(config)
    job = ListJob(
        sums=1, panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1, kernel_height=1,
        kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1, output=split(9, 3),
        low=-1, high=1,
    )
    memory[0], buffers.b[0, 0, 0] = 2, 3
    start = np.array([[2**31 - 4]], np.int32)
    assert run_job(config, MemoryArea(config, memory, 0, 16), buffers, job, start) is None
    assert memory[36:40].view("<i4") == [2 - 2**31]


@pytest.mark.parametrize("fields, start, text", [
    (dict(columns=8), None, "tiles of a job with parts must be 1, not 2"),
    (dict(panel_rows=2), None, "panels of a job with parts must be 1, not 2"),
    (dict(out_height=2), None, "panels of a job with parts must be 1, not 2"),
    (dict(), (2, 4), r"pixels of a job with parts must be those of the part before \(2\), not 3"),
    (dict(), (3, 3), r"columns of a job with parts must be those of the part before \(3\), not 4"),
    (dict(partial=0, columns=8), (3, 8), "tiles of a job with parts must be 1, not 2"),
])
def test_undefined_parts_are_refused(fields, start, text):
    case = random_job(np.random.default_rng(4), CHIPS[2], kind="point", add=False, x=X)
    job = replace(case.job, partial=1, cross=0, columns=4, out_height=1, out_width=3, panel_rows=3)
    config, sums = case.buffers.config, None if start is None else np.zeros(start, np.int32)
    memory = MemoryArea(config, case.image.memory, 0, config.words)
    assert run_job(config, memory, case.buffers, job).shape == (3, 4)
    with pytest.raises(ValueError, match=f"^{text}$"):
        run_job(config, memory, case.buffers, replace(job, **fields), sums)


def test_taps_outside_are_not_read():
    """A window that lies outside the map needs no vector."""
    case = random_job(np.random.default_rng(5), CHIPS[0], kind="point", add=False)
    job = replace(case.job, first_y=-1000, input=split(-1500, 3), outside=0)
    run(replace(case, job=job))


def test_add_equals_tensorflow_lite():
    """All pairs of bytes, with the scales that TensorFlow Lite computes."""
    kernel = ARITHMETIC["tflite.add"]
    zeros, multipliers, shifts = (3, -7), (1 << 30, 1395864371), (0, -1)
    attributes = dict(
        zeros=zeros, left_shift=20, multipliers=multipliers, shifts=shifts,
        multiplier=1610612736, shift=-18, zero=5, low=-100, high=127,
    )
    config = network_core(2, 4, 4, 4, words=4096 * 16, lines=8)
    x, y = np.divmod(np.arange(1 << 16), 256)
    x, y = (v.astype(np.uint8).view(np.int8).reshape(256, 16, 16) for v in (x, y))
    # The layer itself is the identity: weight 1, scale 1.
    one, columns = (1 << 30, 1), 16
    layer = NetworkCoreLayer(
        x=y, weights=np.eye(16, dtype=np.int8)[:, None, None], groups=1,
        bias=np.full(columns, -zeros[1]), multiplier=np.full(columns, one[0]),
        shift=np.full(columns, one[1]), out=(256, 16), first=(0, 0), stride=(1, 1),
        dilation=(1, 1), outside=0, zero=zeros[1], low=-128, high=127,
        addition=LayerAddition(
            x=x, zero=zeros[0],
            scales=(*zip(multipliers, shifts, strict=True), (1610612736, -18)),
            sum_zero=5, low=-100, high=127,
        ),
    )
    case = case_of(np.random.default_rng(6), config, layer)
    run(case)
    [expected] = kernel([x, y], attributes)
    assert (case.image.read_map(case.output, x.shape) == expected).all()


def test_average_pool_equals_tensorflow_lite():
    """A depthwise job with weights of 64, and the scale 1 / (9 * 64)."""
    x = np.random.default_rng(7).integers(-128, 128, (9, 9, 8)).astype(np.int8)
    m = round(2**31 * 512 / 576)
    layer = NetworkCoreLayer(
        x=x, weights=np.full((8, 3, 3, 1), 64, np.int8), groups=8, bias=np.zeros(8, int),
        multiplier=np.full(8, m), shift=np.full(8, -9), out=(3, 3), first=(0, 0), stride=(3, 3),
        dilation=(1, 1), outside=0, zero=0, low=-128, high=127,
    )
    case = case_of(np.random.default_rng(8), CHIPS[3], layer)
    run(case)
    [expected] = POOLS["tflite.average_pool"]([x[None]], dict(
        kernel_size=(3, 3), stride=(3, 3), padding=(0, 0), output=(3, 3), low=-128, high=127
    ))
    assert (case.image.read_map(case.output, (3, 3, 8)) == expected[0]).all()
