"""Write ``src/weft/models/board_targets.json``: the cores of all boards, as networks need them.

The boards themselves need Amaranth, whose import takes longer than a report.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from weft.boards.catalog import BOARDS
from weft.designs import to_dict

__all__ = ["FILE", "main", "text"]

FILE = Path(__file__).resolve().parent.parent / "src" / "weft" / "models" / "board_targets.json"


def text() -> str:
    """The file: by the name of a core, its clock, baud rate and Config, and its memory."""
    cores = {board.name: board for board in BOARDS.values()}
    cores |= {
        f"{board.name}-{purpose}": board.built_for(purpose)
        for board in BOARDS.values() for purpose in board.networks
    }
    return json.dumps({name: _facts(board) for name, board in cores.items()}, indent=1) + "\n"


def _facts(board):
    config = to_dict(board.config, chosen=True)
    facts = {"clock": board.clock, "baud": board.baud, "config": config}
    return facts if board.memory is None else facts | {"memory": asdict(board.memory)}


def main() -> int:
    """Write the file; 0."""
    FILE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
