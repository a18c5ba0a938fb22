"""Phases of lists: what the parts of the core do in each layer, by hand."""

from weft.models.report.network_core import LayerWork, list_phases


def test_work_of_layers(network_core_program):
    """A layer has 36 pixels in 12 panels, and 2 tiles of 9 taps of 2 vectors: 18 words of B.

    A tile has 2 chunks; with ADD a chunk takes 2 cycles. A word has 16 bytes, and one of the ADD
    table has 4. The parameter lines stay in their buffer.
    """
    first, second = (
        list_phases(network_core_program, part) for part in network_core_program.segments
    )
    [added], [plain] = first.layers, second.layers
    assert (added.compute, plain.compute) == (12 * 2 * 18, 12 * 2 * 18)
    assert (added.drain, plain.drain) == (36 * 2 * 2 * 2, 36 * 2 * 2)
    words = 2 * 18 * 16
    assert (added.load_bytes, plain.load_bytes) == (words + 512 * 4, words)
    assert isinstance(added, LayerWork) and added.wait > 512  # the list begins with loads


def test_a_step_of_a_core_with_one_port_takes_a_cycle(micro_program):
    """A layer has 36 pixels, and 2 tiles of 9 taps of 2 vectors."""
    found = [
        layer for part in micro_program.segments
        for layer in list_phases(micro_program, part).layers
    ]
    assert [layer.compute for layer in found] == [36 * 2 * 18] * 2


def test_times_of_jobs_and_loads(network_core_program):
    for tables, segment in zip((1, 0), network_core_program.segments, strict=True):
        phases = list_phases(network_core_program, segment)
        assert phases.cycles == segment.cycles
        assert len(phases.jobs) == sum(step.jobs for step in segment.steps)
        assert len(phases.loads) == len(phases.jobs) + tables
        for job in phases.jobs:
            assert 0 < job.start < job.computed < job.end < phases.cycles
        assert segment.steps[-1].cycles == phases.jobs[-1].end
        assert max(end for _, end in phases.loads) < phases.jobs[-1].start
