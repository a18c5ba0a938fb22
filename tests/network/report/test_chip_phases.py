"""Phases of lists: what the parts of the core do in each layer, by hand."""

from weft.network.report.chip_phases import LayerWork, list_phases


def test_work_of_layers(chip_program):
    """A layer has 36 pixels in 12 panels, and 2 tiles of 9 taps of 2 vectors: 18 words of B.

    A tile has 2 chunks; with ADD a chunk takes 4 cycles. A word has 16 bytes, a line 24. The first
    layer has two jobs, each with 3 lines for ADD.
    """
    first, second = (list_phases(chip_program, part) for part in chip_program.segments)
    [added], [plain] = first.layers, second.layers
    assert (added.compute, plain.compute) == (12 * 2 * 18, 12 * 2 * 18)
    assert (added.drain, plain.drain) == (36 * 2 * 2 * 4, 36 * 2 * 2)
    words, lines = 2 * 18 * 16, 2 * 2 * 24
    assert (added.load_bytes, plain.load_bytes) == (words + lines + 2 * 3 * 24, words + lines)
    assert isinstance(added, LayerWork) and added.wait > 36 * 4 / 2  # the list begins with a load


def test_times_of_jobs_and_loads(chip_program):
    for segment in chip_program.segments:
        phases = list_phases(chip_program, segment)
        assert phases.cycles == segment.cycles
        assert len(phases.jobs) == sum(step.jobs for step in segment.steps)
        assert len(phases.loads) == 2 * len(phases.jobs)
        for job in phases.jobs:
            assert 0 < job.start < job.computed < job.end < phases.cycles
        assert segment.steps[-1].cycles == phases.jobs[-1].end
        assert max(end for _, end in phases.loads) < phases.jobs[-1].start
