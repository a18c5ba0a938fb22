"""``weft explore report``: one offline page about the last exploration of a store."""

import tempfile
from pathlib import Path

from weft.cli.explore_options import named_board, store_of
from weft.cli.output_paths import output_file
from weft.cli.progress import progress
from weft.files import write_text

__all__ = ["write_report"]


def write_report(args) -> int:
    """Write ``report.html`` into the output folder; return the exit code."""
    from weft.explore.findings import findings
    from weft.explore.page import exploration_page
    from weft.explore.workload import workload_of
    from weft.tasks.store import StoreError

    path = output_file(Path(args.output) / "report.html")
    with progress() as show, store_of(args, show.say) as store:
        arguments = store.last()
        if arguments is None:
            raise StoreError(f"the store {store.path} has no exploration; run weft explore first")
        board = named_board(arguments["board"], arguments["purpose"])
        workloads = [workload_of(word) for word in arguments["workload"]]
        with show.task("computing cycles") as advance:
            found = findings(
                board, workloads, store.all(), arguments["objective"], arguments["rate"], advance
            )
        with show.task("drawing the page"):
            page = exploration_page(found, _floorplan(found, store))
    write_text(path, page)
    print(f"page: {path}")
    return 0


def _floorplan(found, store):
    """The floorplan of the winner as a PNG; None if the store has no layout of it."""
    from weft.boards.blocks import Cell
    from weft.cli.bitstream_report import floorplan_picture
    from weft.explore.points import Point

    for winner in found.guide.ranking()[:1]:
        runs = [(outcome.fmax, seed) for (config, seed), outcome in found.guide.outcomes.items()
                if config == winner and outcome.done]
        layout = store.layout(Point(found.board.device, winner, max(runs)[1]))
        if not layout:
            return None
        cells = [Cell(block, resource, False, x, y, bel) for block, resource, x, y, bel in layout]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "floorplan.png"
            floorplan_picture(file, cells, title=f"{winner.name} on {found.board.device.name}")
            return file.read_bytes()
    return None
