"""``weft sim``: generate a design, check it on two simulators, run a network on it."""

import argparse
import tempfile
from importlib.util import find_spec
from pathlib import Path

from weft.cli.argument_types import integer, path
from weft.cli.networks import NETWORKS
from weft.cli.options import add_config, config_of
from weft.cli.output_paths import output_file, output_folder
from weft.hints import to_install

__all__ = ["add"]

DESCRIPTION = """\
The main job. Generates the design, checks its Verilog in cocotb on Icarus and on Verilator against
the golden model, then runs a network trained on handwritten digits through the simulated
hardware: every layer of it, all test images. Prints what each layer took beside what the cycle
model says, and draws the array's activity over time.

  weft sim                                        the default design
  weft sim --rows 4 --cols 4 --depth 4            another one
  weft sim --dtype bf16                           the same network in BF16
  weft sim --network-only                         without the two checks
  weft sim --waves                                two small products, every signal kept

The simulated link feeds the core at its stream's rate and always takes results. Exit code 1 where
anything differs from golden or from the cycle model.
"""
# Products whose waveform is worth a look: two jobs, the second of ragged shape.
TRACED = [(16, 16, 16), (13, 7, 9)]


def add(subparsers):
    """Register ``weft sim``."""
    parser = subparsers.add_parser(
        "sim",
        help="check a design on two simulators and run a network on it",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", metavar="DIR", default="out", type=path("out"),
        help="where the picture (activity.png) or the trace (weft.vcd) goes; default out",
    )
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="decides all that the checks and --waves draw; 0 or more, default 1",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--network-only", action="store_true", help="leave out the two checks")
    what.add_argument(
        "--waves", action="store_true",
        help="only run two small products, and leave a trace (VCD) to open",
    )
    add_config(parser)
    parser.set_defaults(run=_run)


def _run(args) -> int:
    config = config_of(args)
    from weft.cli.progress import progress
    from weft.sim import tools

    checks = not (args.network_only or args.waves)
    for need in (tools.icarus, tools.libpython) if checks else ():
        need()
    for need in (tools.verilator, tools.compiler):
        need()
    out = output_folder(args.out)
    made = output_file(out / ("weft.vcd" if args.waves else "activity.png"))
    print(f"{config.name}: {config.peak} MAC/cycle, {config.bytes_in} bytes a cycle in,"
          f" {config.bytes_out} out", flush=True)
    with progress() as show:
        if args.waves:
            return _waves(config, made, args.seed, show)
        if checks:
            _check(config, args.seed, show)
        layers, timeline, predictions, network = _network(config, show)
        picture = _draw(made, timeline, config, show)
    from weft.cli.sim_report import layer_table

    good = layer_table(
        layers, images=len(network.images), accuracy=network.accuracy(predictions),
        float_accuracy=network.float_accuracy, numbers=NETWORKS[config.dtype].name,
    )
    print(f"Activity of the array over time: {picture}")
    return 0 if good else 1


def _draw(path, timeline, config, show):
    """Where the picture is, or why there is none: the table is worth having without it."""
    if find_spec("matplotlib") is None:
        return f"not drawn, for want of matplotlib; {to_install(extra='report')}"
    from weft.cli.activity import activity_picture

    with show.task("drawing"):
        activity_picture(path, timeline, f"Digits network on {config.name}")
    return path


def _check(config, seed, show):
    """The benches on both simulators; raises BenchError where one fails."""
    from weft.sim.build import folder, verilog
    from weft.sim.runner import SIMULATORS, run

    with show.task("generating its Verilog"):
        text = verilog(config)
    for simulator in SIMULATORS:
        with show.task(f"checking it in cocotb on {simulator} against golden, seed {seed}"):
            outcome = run(
                config, simulator, build_dir=folder() / "benches", seed=seed, verilog=text
            )
        show.say(f"{outcome.tests} benches passed in {outcome.cycles:,} cycles")


def _network(config, show):
    """Run every layer; (rows of the table, Timeline, predictions, network)."""
    import numpy as np

    from weft.cli.activity import BUSY, Timeline
    from weft.cli.sim_report import LayerRow
    from weft.host import Accelerator, GoldenTransport
    from weft.sim.transport import SimTransport

    network = NETWORKS[config.dtype].load()
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "activity"
        with show.task("building the simulated accelerator"):
            transport = SimTransport(config, activity=trace)
        with Accelerator(transport, config) as accelerator:
            count = len(network.layers)
            with show.task(f"running {len(network.images)} images", total=count) as advance:
                predictions, runs = network.run(
                    network.images, accelerator, after=lambda run: advance()
                )
            # The same driver on the cycle model: it too sends nothing that is there already.
            with Accelerator(GoldenTransport(config), config) as model:
                predicted = [run.record.cycles for run in network.run(network.images, model)[1]]
            rows = []
            with show.task("measuring the steady state", total=count) as advance:
                for run, layer, cycles in zip(runs, network.layers, predicted, strict=True):
                    rows.append(LayerRow(
                        name=run.name, m=run.m, k=run.k, n=run.n, cycles=run.record.cycles,
                        predicted=cycles, match=_matches(config, run, layer),
                        utilization=_steady(accelerator, run, layer),
                    ))
                    advance()
        flags = np.fromfile(trace, np.uint8)
    busy = flags[(flags & BUSY) != 0]
    starts = np.cumsum([0, *(run.record.cycles for run in runs)]).tolist()
    timeline = Timeline(
        busy[: starts[-1]],
        tuple((run.name, start) for run, start in zip(runs, starts, strict=False)),
    )
    return rows, timeline, predictions, network


def _matches(config, run, layer):
    """Whether the accelerator gave what golden gives: results, and sums where it gave those."""
    sums, y = NETWORKS[config.dtype].golden(run, layer, config)
    return _same(y, run.y) and (run.sums is None or _same(sums, run.sums))


def _same(x, y):
    """Whether two arrays are the same, bit for bit."""
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def _steady(accelerator, run, layer):
    """Utilization over the interval of equal products back to back, loading included; measured."""
    import numpy as np

    def cycles(count):
        x = np.stack([run.x] * count)
        w = np.stack([layer.weights.T] * count)
        given = layer.arguments(whole=run.sums is None)
        return accelerator.matmul(x, w, record=True, **given)[1].cycles

    cycles(3)  # from here on, the driver keeps the same parameters on the chip
    interval = cycles(3) - cycles(2)
    return run.m * run.k * run.n / interval / accelerator.config.peak


def _waves(config, path, seed, show):
    import numpy as np

    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    kind = NETWORKS[config.dtype]
    random = np.random.default_rng(seed)
    with show.task("building the simulated accelerator with its trace"):
        transport = SimTransport(config, waves=path)
    right = True
    with Accelerator(transport, config) as accelerator:
        for m, k, n in TRACED:
            with show.task(f"{m} x {k} x {n}, seed {seed}"):
                a, b = kind.matrix(random, m, k), kind.matrix(random, k, n)
                right &= _same(accelerator.matmul(a, b), kind.product(a, b, config))
    print(f"{path}: every signal, {path.stat().st_size:,} bytes;"
          f" results {'equal golden' if right else 'DIFFER from golden'}")
    return 0 if right else 1
