"""Model buffers that follow a plan, and check the data of each of its jobs."""

import itertools

from weft.commands import JobFlag, LoadFlag, Region
from weft.host.planner import Planner

__all__ = ["PlannedCore", "plan"]

FEEDS = JobFlag.FEED_A | JobFlag.FEED_B
START = JobFlag.PRELOAD | JobFlag.BROADCAST
FINISH = JobFlag.REQUANTIZE | JobFlag.TABLE | JobFlag.ROUND | JobFlag.CLAMP


class PlannedCore:
    """Buffers that record the panel and word at each address.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    loaded : dict of int
        Words loaded, by `weft.commands.Region`.
    """

    def __init__(self, config):
        self.config = config
        self.memory = {region: {} for region in Region}
        self.loaded = dict.fromkeys(Region, 0)
        self.pages = {Region.A: 16, Region.B: 16, Region.PARAMETERS: 1, Region.C: 1}
        self.words = {
            Region.A: config.a_words, Region.B: config.b_words, Region.C: config.c_words,
            Region.PARAMETERS: config.b_words // 16,
        }

    def keep(self, region, page, pitch, panels, words, first=(0, 0)):
        """Record words of panels from ``first`` (panel, word) on, from ``page`` on."""
        for panel, word in itertools.product(range(panels), range(words)):
            at = self.pages[region] * (page + panel * pitch) + word
            assert at < self.words[region]
            self.memory[region][at] = first[0] + panel, first[1] + word

    def load(self, feed):
        """Perform a load."""
        load, words = feed.load, feed.load.words
        self.loaded[load.operand] += load.panels * words
        if load.operand in (Region.A, Region.B):
            assert load.flags == LoadFlag.FEED | (LoadFlag.CONTINUE if feed.word else LoadFlag(0))
            assert words <= 16 * load.pitch
        elif load.operand == Region.PARAMETERS:  # a page has the parameters of a panel
            assert (load.flags, words) == (0, -(-self.config.cols // self.config.lanes))
            words = 1
        self.keep(
            load.operand, load.page, load.pitch, load.panels, words, (feed.panel, feed.word)
        )

    def follow(self, steps, m, n, k, flags=JobFlag(0)):
        """Check the data of every job of a product [m, k] x [k, n] with ``flags``."""
        config, done = self.config, {}  # values of k summed in each tile
        for step in steps:
            job = step.job
            job.pack()
            assert step.commands == [
                *(feed.load for feed in step.before), job, *(feed.load for feed in step.feeds)
            ]
            for feed in (*step.before, *step.feeds):
                self.load(feed)
            fed = {feed.load.operand for feed in step.feeds}
            assert (JobFlag.FEED_A in job.flags, JobFlag.FEED_B in job.flags) == (
                Region.A in fed, Region.B in fed
            )
            first = done.get((step.rows.start, step.cols.start), 0)
            last = first + job.k == k
            assert step.has_results == last
            want = JobFlag(0) if first else flags & START
            want |= flags & FINISH if last else JobFlag.KEEP
            want |= JobFlag.ACCUMULATE if first else JobFlag(0)
            assert job.flags & ~FEEDS == want
            if not last or first:
                assert job.m <= config.rows and job.n <= config.cell.slots * config.cols
            self.check_operands(step, first)
            self.check_columns(step)
            for i in range(step.rows.start, step.rows.stop, config.rows):
                for j in range(step.cols.start, step.cols.stop, config.cols):
                    assert done.get((i, j), 0) == first
                    done[i, j] = first + job.k
        tiles = itertools.product(range(0, m, config.rows), range(0, n, config.cols))
        assert done == dict.fromkeys(tiles, k)

    def check_operands(self, step, first):
        """Check that A and B are at the addresses of the job; ``first`` is its first k."""
        job, config = step.job, self.config
        sides = (
            (Region.A, step.rows, config.rows, job.a_page, job.a_pitch, job.a_pages, job.m),
            (Region.B, step.cols, config.cols, job.b_page, job.b_pitch, job.b_pages, job.n),
        )
        words = -(-job.k // config.depth)
        for side, span, edge, page, pitch, pages, lines in sides:
            assert (span.start % edge, span.stop - span.start) == (0, lines)
            for panel, word in itertools.product(range(-(-lines // edge)), range(words)):
                at = 16 * (page + panel * pitch) + word
                assert 16 * page <= at < 16 * (page + pages) <= self.words[side]
                want = span.start // edge + panel, first // config.depth + word
                assert self.memory[side].get(at) == want

    def check_columns(self, step):
        """Check that C and parameters are at the addresses of the job."""
        job, config = step.job, self.config
        if JobFlag.PRELOAD not in job.flags:
            assert (job.c_page, job.c_pitch, job.c_pages) == (0, 0, 0)
        for panel in range(-(-job.n // config.cols)):
            whose = step.cols.start // config.cols + panel
            if job.flags & (JobFlag.CLAMP | JobFlag.REQUANTIZE):
                at = job.b_page + panel * job.b_pitch
                assert self.memory[Region.PARAMETERS][at] == (whose, 0)
            if JobFlag.PRELOAD not in job.flags:
                continue
            rows = [0]
            if JobFlag.BROADCAST not in job.flags:
                rows = range(step.rows.start, step.rows.stop)
            for n, row in enumerate(rows):
                at = job.c_page + panel * job.c_pitch + n
                assert job.c_page <= at < job.c_page + job.c_pages <= config.c_words
                assert self.memory[Region.C][at] == (whose, row)


def plan(config, m, n, k, flags=JobFlag(0), **places):
    """Run the steps of a product on model buffers; returns the steps and the `PlannedCore`."""
    steps = list(Planner(config).plan(m, n, k, flags=flags, **places))
    core = PlannedCore(config)
    for name, region in (("a_page", Region.A), ("b_page", Region.B)):
        if name in places:  # loaded before
            lines, edge = (m, config.rows) if region == Region.A else (n, config.cols)
            words = -(-k // config.depth)
            core.keep(region, places[name], -(-words // 16), -(-lines // edge), words)
    core.follow(steps, m, n, k, flags)
    return steps, core
