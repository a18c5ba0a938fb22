"""``weft clean``: deletes the cache of compiled models."""

__all__ = ["add"]

DESCRIPTION = """\
Delete the simulation models, Verilog texts and compiled libraries that Weft keeps in its cache.
They are built again when they are needed. The cache is limited to 2 GiB: the least recently used
entries are deleted first.
"""


def add(subparsers):
    """Register ``weft clean``."""
    parser = subparsers.add_parser(
        "clean", help="delete the cache of compiled models", description=DESCRIPTION,
    )
    parser.set_defaults(run=_run)


def _run(args) -> int:
    from weft.sim import cache

    root = cache.root()
    print(f"{root}: deleted {cache.clear() / 1e6:,.1f} MB")
    return 0
