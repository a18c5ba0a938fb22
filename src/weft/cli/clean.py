"""``weft clean``: deletes the cache of compiled models."""

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "delete the cache of compiled models"
DESCRIPTION = """\
Delete the simulation models, Verilog texts and compiled libraries that Weft keeps in its cache.
They are built again when they are needed. The cache is limited to 2 GiB: the least recently used
entries are deleted first.
"""


def add(parser):
    """Add the arguments of ``weft clean``."""


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.sim import cache

    root = cache.root()
    print(f"{root}: deleted {cache.clear() / 1e6:,.1f} MB")
    return 0
