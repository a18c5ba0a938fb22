"""``weft sim``: checks a design on two simulators, and runs a network on it."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from weft.cli.argument_types import integer, path
from weft.cli.networks import NETWORKS
from weft.cli.options import add_config, config_of
from weft.cli.output_paths import output_file, output_folder
from weft.hints import to_install

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "check a design on two simulators and run a network on it"
DESCRIPTION = """\
Generate the design, check its Verilog with cocotb on Icarus and on Verilator against the golden
model, then run a network trained on handwritten digits on the simulated hardware: all layers, all
test images. Print the cycles of each layer, measured and predicted by the cycle model, and draw the
array's activity over time.

  weft sim                                        the default design
  weft sim --rows 4 --cols 4 --depth 4            another design
  weft sim --dtype bf16                           the same network in BF16
  weft sim --network-only                         without the two checks
  weft sim --waves                                two small products, with a trace of all signals

The simulated link always has the next word for the core, and always accepts results. Exit code 1 if
a result differs from the golden model, or cycles differ from the cycle model.
"""
# The products of --waves: the second one has a ragged shape.
TRACED = [(16, 16, 16), (13, 7, 9)]


def add(parser):
    """Add the arguments of ``weft sim``."""
    parser.add_argument(
        "--out", metavar="DIR", default="out", type=path("out"),
        help="folder of the picture (activity.png) or the trace (weft.vcd); default out",
    )
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="seed of the random operands of the checks and of --waves; 0 or more, default 1",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--network-only", action="store_true", help="skip the two checks")
    mode.add_argument(
        "--waves", action="store_true",
        help="only run two small products, and write a trace of all signals (VCD)",
    )
    add_config(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    config = config_of(args)
    from weft.cli.progress import progress
    from weft.sim import tools

    checks = not (args.network_only or args.waves)
    for require in (tools.icarus, tools.libpython) if checks else ():
        require()
    for require in (tools.verilator, tools.compiler):
        require()
    out = output_folder(args.out)
    file = output_file(out / ("weft.vcd" if args.waves else "activity.png"))
    print(f"{config.name}: {config.peak} MAC/cycle, {config.bytes_in} bytes/cycle in,"
          f" {config.bytes_out} bytes/cycle out", flush=True)
    with progress() as show:
        if args.waves:
            return _waves(config, file, args.seed, show)
        if checks:
            _check(config, args.seed, show)
        layers, timeline, predictions, network = _network(config, show)
        picture = _draw(file, timeline, config, show)
    from weft.cli.sim_report import layer_table

    passed = layer_table(
        layers, images=len(network.images), accuracy=network.accuracy(predictions),
        float_accuracy=network.float_accuracy, numbers=NETWORKS[config.dtype].name,
    )
    print(f"Activity of the array over time: {picture}")
    return 0 if passed else 1


def _draw(path, timeline, config, show):
    """The path of the picture, or why it was not drawn; the command works without matplotlib."""
    if find_spec("matplotlib") is None:
        return f"not drawn, because matplotlib is not installed; {to_install(extra='report')}"
    from weft.cli.activity import activity_picture

    with show.task("drawing"):
        activity_picture(path, timeline, f"Digits network on {config.name}")
    return path


def _check(config, seed, show):
    """Run the benches on both simulators. Raises BenchError if one fails."""
    from weft.sim.build import folder, verilog
    from weft.sim.runner import SIMULATORS, run

    with show.task("generating Verilog"):
        text = verilog(config)
    for simulator in SIMULATORS:
        with show.task(f"running cocotb benches on {simulator} against golden, seed {seed}"):
            outcome = run(
                config, simulator, build_dir=folder() / "benches", seed=seed, verilog=text
            )
        show.say(f"{outcome.tests} benches passed in {outcome.cycles:,} cycles")


def _network(config, show):
    """Run every layer. Returns (rows of the table, Timeline, predictions, network)."""
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
                    network.images, accelerator, on_layer=lambda run: advance()
                )
            # The cycle model runs behind the same driver, which does not send resident data again.
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
    """Whether the results, and the sums if the accelerator returned them, equal golden's."""
    sums, y = NETWORKS[config.dtype].golden(run, layer, config)
    return _same(y, run.y) and (run.sums is None or _same(sums, run.sums))


def _same(x, y):
    """Whether two arrays are equal, bit for bit."""
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def _steady(accelerator, run, layer):
    """The measured utilization with equal products back to back, loading included."""
    import numpy as np

    def cycles(count):
        x = np.stack([run.x] * count)
        w = np.stack([layer.weights.T] * count)
        arguments = layer.arguments(on_chip=run.sums is None)
        return accelerator.matmul(x, w, record=True, **arguments)[1].cycles

    cycles(3)  # after this, the parameters are resident
    interval = cycles(3) - cycles(2)
    return run.m * run.k * run.n / interval / accelerator.config.peak


def _waves(config, path, seed, show):
    import numpy as np

    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    network = NETWORKS[config.dtype]
    random = np.random.default_rng(seed)
    with show.task("building the simulated accelerator with a trace"):
        transport = SimTransport(config, waves=path)
    passed = True
    with Accelerator(transport, config) as accelerator:
        for m, k, n in TRACED:
            with show.task(f"multiplying {m} x {k} x {n}, seed {seed}"):
                a, b = network.matrix(random, m, k), network.matrix(random, k, n)
                passed &= _same(accelerator.matmul(a, b), network.product(a, b, config))
    print(f"{path}: all signals, {path.stat().st_size:,} bytes;"
          f" results {'equal golden' if passed else 'DIFFER from golden'}")
    return 0 if passed else 1
