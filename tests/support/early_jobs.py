"""Jobs with the flag ``early``, and their spans: by walking over all steps."""

import itertools
from dataclasses import replace

from weft.network_core.descriptors import join, split

__all__ = ["largest_step", "started_early"]


def largest_step(config, job) -> int:
    """The largest step from a window origin to a vector that its pixel reads, in vectors."""
    tap_x, tap_y, group = (
        join(step, config.banks) for step in (job.tap_x_step, job.tap_y_step, job.group_step)
    )
    tap_x += job.tap_vectors - 1
    tap_y += (job.kernel_width - 1) * tap_x + job.tap_vectors - 1
    tiles = -(-job.columns // config.array.cols)
    return max(
        g * group + ky * tap_y + kx * tap_x + job.tap_vectors - 1
        for g, ky, kx in itertools.product(
            range(-(-tiles // job.group_tiles)), range(job.kernel_height), range(job.kernel_width)
        )
    )


def started_early(rng, config, job, probability=0.8):
    """The job, with the flag at random if its core and its kind have it; the span may be larger."""
    other = job.partial or job.softmax or job.lstm
    if not config.early or other or rng.random() >= probability:
        return job
    span = largest_step(config, job) + int(rng.choice([0, 0, 0, rng.integers(200)]))
    return replace(job, early=1, span=split(span, config.banks))
