"""``weft explore record``: measures the points that the estimates are fitted to."""

import itertools

from weft.cli.explore_options import Left, engine_of, store_of
from weft.cli.output_paths import output_file
from weft.cli.progress import progress

__all__ = ["record"]

DRAWS = 100  # of the space, at most, for each random point


def record(args) -> int:
    """Place and route the recorded points, and the ones of the options; write them to the file."""
    from weft.explore import recorded
    from weft.explore.model import family_of
    from weft.tasks.session import run_items

    path = output_file(args.file or recorded.FILE)
    known = recorded.read(path)
    found = {point.key: (point, outcome) for point, outcome in known}
    wanted = [point for point, _ in known]
    if args.boards:
        wanted += recorded.board_points(packed=args.packed)
    points = {
        point.key: point for point in wanted if args.family in (None, family_of(point.config))
    }
    points |= _more(args)
    with progress() as show, store_of(args, show.say) as store:
        waiting = iter(points.values())
        with engine_of(args, show) as engine, show.task(
            "placing and routing", total=len(points)
        ) as advance:

            def arrived(point, outcome, in_store):
                found[point.key] = point, outcome
                advance()
                if not in_store:
                    engine.forget(point)
                    show.say(f"{point}: {outcome}")

            left = Left(show.say)
            run_items(
                lambda: next(waiting, None), engine, store, seconds=60 * args.minutes,
                on_outcome=arrived, on_left=left,
            )
    if args.bench:
        found |= {point.key: (point, outcome)
                  for point, outcome in recorded.bench_points(args.bench)}
    done = [(point, outcome) for point, outcome in found.values() if outcome.done]
    recorded.write(path, done)
    print(f"{path}: {len(done)} points")
    return int(left.lost > 0)


def _more(args):
    """The random points, by their keys.

    Raises BoardError if the device is unknown, has no cores of the family, or too few.
    """
    from weft.boards.board import BoardError
    from weft.boards.devices import DEVICES
    from weft.explore import recorded

    if args.device not in DEVICES:
        raise BoardError(f"--device must be one of {', '.join(DEVICES)}, not {args.device!r}")
    device, fresh = DEVICES[args.device], {}
    families = recorded.families(device)
    family = args.family or families[0]
    if args.more and family not in families:
        raise BoardError(
            f"--family must be {' or '.join(families)} for {device.name}, not {family}"
        )
    drawn = recorded.varied(
        device, args.seed, networks=family in families[1:], packed=args.packed
    )
    for point in itertools.islice(drawn, DRAWS * args.more):
        if len(fresh) == args.more:
            break
        fresh.setdefault(point.key, point)
    if len(fresh) < args.more:
        raise BoardError(
            f"--more must be at most {len(fresh)} for {device.name}, not {args.more}: its space"
            " has no other cores"
        )
    return fresh
