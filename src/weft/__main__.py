"""The ``weft`` command, and ``python -m weft``."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command; return its exit code. Ctrl-C while it is imported ends it in one line."""
    try:
        from weft import cli
    except KeyboardInterrupt:
        print("weft: stopped", file=sys.stderr)
        return 130
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
