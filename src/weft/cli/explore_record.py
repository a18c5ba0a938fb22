"""``weft explore record``: measures the points that the estimates are fitted to."""

from pathlib import Path

from weft.cli.explore_options import engine_of, store_of
from weft.cli.output_paths import output_file, part_of
from weft.cli.progress import progress

__all__ = ["record"]


def record(args) -> int:
    """Place and route the recorded points and ``--more`` random ones; write them to the file."""
    from weft.boards.devices import DEVICES
    from weft.explore import recorded
    from weft.tasks.session import run_items

    path = output_file(args.file or recorded.FILE)
    known = recorded.read(path)
    found = {point.key: (point, outcome) for point, outcome in known}
    points = [point for point, _ in known]
    if args.more:
        more = recorded.varied(DEVICES[args.device], args.seed)
        fresh = {}
        while len(fresh) < args.more:
            point = next(more)
            fresh.setdefault(point.key, point)
        points += fresh.values()
    with progress() as show, store_of(args, show.say) as store:
        waiting = iter(points)
        with engine_of(args, show) as engine, show.task(
            "placing and routing", total=len(points)
        ) as advance:

            def arrived(point, outcome, in_store):
                found[point.key] = point, outcome
                advance()
                if not in_store:
                    engine.forget(point)
                    show.say(f"{point}: {outcome}")

            run_items(lambda: next(waiting, None), engine, store, seconds=60 * args.minutes,
                       on_outcome=arrived)
    if args.bench:
        found |= {point.key: (point, outcome)
                  for point, outcome in recorded.bench_points(args.bench)}
    part = part_of(Path(path))
    recorded.write(part, [(point, outcome) for point, outcome in found.values() if outcome.done])
    part.replace(path)
    print(f"{path}: {len(found)} points")
    return 0
