"""What the commands of explorations share: the board, the engine for points, and their store."""

from pathlib import Path

from weft.cli.engine_options import limits_of, started

__all__ = ["STORE", "Left", "engine_of", "named_board", "store_of"]

STORE = "explore.sqlite"


def store_of(args, say=print):
    """The store of the arguments."""
    from weft.explore.store import PointStore
    from weft.sim.cache import folder

    return PointStore(Path(args.store) if args.store else folder() / STORE, say=say)


def engine_of(args, show):
    """The engine of the arguments, with its tools set up; says where it runs."""
    from weft.explore.flow import PointSteps

    return started(PointSteps(limits_of(args)), args, show)


def named_board(name, purpose=None):
    """The board of a name or of a file; with ``purpose``, with its network core.

    Raises BoardError if it has none for the purpose.
    """
    from weft.boards.catalog import find, load

    board = load(name) if name.endswith(".py") else find(name)
    return board.built_for(purpose) if purpose else board


class Left:
    """Says which points are left to other processes.

    Attributes
    ----------
    lost : int
        Points that no process is known to run.
    """

    def __init__(self, say):
        self._say = say
        self.lost = 0

    def __call__(self, point, other):
        self._say(f"{point}: {other.describe()}")
        self.lost += not other.alive
