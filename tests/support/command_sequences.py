"""Random sequences of commands, for tests of cycles."""

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, epilogue_flags
from weft.geometry import memories, operands
from weft.timing import Latencies

__all__ = ["draw"]

_FINISHES = {
    "int8": (JobFlag.REQUANTIZE, JobFlag.TABLE), "bf16": (JobFlag.ROUND, JobFlag.CLAMP),
}


def draw(config, random, *, tiles=4, deepest=60, repeat=0.0) -> list:
    """Commands of a few random jobs: fed, resident, overlapping, kept, with epilogue, rejected.

    A job has up to about ``tiles`` tiles in each direction and a K of up to ``deepest``; it has
    the shape of the job before it with probability ``repeat``.
    """
    a, b = operands(config)
    finishing = epilogue_flags(config)
    slots = Latencies.of(config).slots

    def flip(share):
        return random.random() < share

    commands = []
    for tag in range(random.integers(1, 7)):
        if not (commands and repeat and flip(repeat)):
            k = int(random.integers(1, min(deepest, min(a.words, b.words) * a.depth - 1) + 1))
            sizes = [int(random.integers(1, tiles * g.edge + 2)) for g in (a, b)]
        pitch = a.panel_pages(k)
        flags = JobFlag(int(random.integers(0, 4)))
        if flip(0.1):
            flags |= JobFlag.ACCUMULATE
        for n, flag in enumerate(_FINISHES[config.dtype]):
            if flip(0.5 - 0.2 * n if flag in finishing else 0.05):
                flags |= flag
        if flip(0.15):
            flags |= JobFlag.KEEP
            most = a.edge, slots * b.edge
            sizes = [min(size, edge) for size, edge in zip(sizes, most, strict=True)]
        sizes = [
            min(size, g.pages // pitch * g.edge) for size, g in zip(sizes, (a, b), strict=True)
        ]
        panels = [g.panels(size) for size, g in zip(sizes, (a, b), strict=True)]
        pages = [
            int(random.integers(0, g.pages - n * pitch + 1))
            for n, g in zip(panels, (a, b), strict=True)
        ]
        words = a.panel_words(k)
        if flip(0.15):
            commands.append(Load(0, pages[0], pitch, panels[0], words))
        if Region.PARAMETERS in memories(config) and flip(0.4):
            chunks = -(-config.cols // config.lanes)
            commands.append(Load(Region.PARAMETERS, pages[1], pitch, panels[1], chunks))
        c = {}
        if config.c_words and JobFlag.ACCUMULATE not in flags and flip(0.4):
            c = _start(config, random, sizes, commands)
            flags |= c.pop("flags")
        if JobFlag.TABLE in finishing and flip(0.15):
            flag = LoadFlag(int(random.integers(0, 2)))
            commands.append(Load(Region.TABLE, 0, 1, 1, 256, flag))
        commands.append(Job(
            0 if flip(0.05) else sizes[0], sizes[1], k, pages[0], pitch, panels[0] * pitch,
            pages[1], pitch, panels[1] * pitch, **c, tag=tag, flags=flags,
        ))
        if JobFlag.FEED_A in flags:
            commands.append(Load(0, pages[0], pitch, 1, words, LoadFlag.FEED))
        if JobFlag.FEED_B in flags:
            commands.append(Load(1, pages[1], pitch, panels[1], words, LoadFlag.FEED))
        if JobFlag.FEED_A in flags and panels[0] > 1:
            commands.append(
                Load(0, pages[0] + pitch, pitch, panels[0] - 1, words, LoadFlag.FEED)
            )
    return commands


def _start(config, random, sizes, commands):
    """Fields and flags of a job with a C, if it fits; sends a load at random."""
    panels = -(-sizes[1] // config.cols)
    flags, rows = JobFlag.PRELOAD, sizes[0]
    if random.random() < 0.5 or panels * rows > config.c_words:
        flags, rows = flags | JobFlag.BROADCAST, 1
    if panels > config.c_words:
        return {"flags": JobFlag(0)}
    page = int(random.integers(0, config.c_words - panels * rows + 1))
    if random.random() < 0.5:
        commands.append(Load(Region.C, page, rows, panels, rows))
    return {"flags": flags, "c_page": page, "c_pitch": rows, "c_pages": panels * rows}
