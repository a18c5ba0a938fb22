"""``weft sim``: checks a design on two simulators, and runs a network on it."""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from weft.cli.options import add_config, any_config_of, config_of, integer, path
from weft.config import Config
from weft.design import PerKind
from weft.files import output_file, output_folder
from weft.hints import to_install

__all__ = ["DESCRIPTION", "HELP", "add", "check_test", "run", "run_test"]

def check_test(file) -> Path:
    """The path of a cocotb file. Raises OSError if cocotb cannot import it by its name."""
    path = Path(file).resolve()
    if not path.is_file():
        raise OSError(f"test must be a Python file: there is no {file}")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise OSError(f"test must be a Python file whose name is a word, not {path.name}")
    return path


def run_test(design, test, case, seed, waves, show) -> int:
    """Run a cocotb file on Verilator; return the exit code.

    Raises BenchError if a test fails or none runs, and ToolError if a tool is missing.
    """
    from weft.files import write_bytes
    from weft.sim.build import folder
    from weft.sim.runner import run

    top, verilog = _TOPS.of(design)
    with show.task("generating Verilog"):
        text = verilog(design)
    if str(test.parent) not in sys.path:
        sys.path.insert(0, str(test.parent))  # the simulator imports the file by its name
    with show.task(f"running {test.name}, seed {seed} (compiles once)"):
        outcome = run(
            design, "verilator", build_dir=folder() / "tests", seed=seed, verilog=text, top=top,
            modules=(test.stem,), testcase=case, waves=waves is not None,
        )
        if waves is not None:
            write_bytes(waves, (outcome.log.parent / "dump.vcd").read_bytes())
    number = f"{outcome.tests} test{'s' * (outcome.tests != 1)}"
    print(f"{test.name} on {design.name}: {number} passed in {outcome.cycles:,} cycles")
    if waves is not None:
        print(f"{waves}: all signals, {waves.stat().st_size:,} bytes")
    return 0


def _core(design):
    from weft.sim.build import verilog

    return verilog(design)


def _board(design):
    from weft.hw import export
    from weft.hw.serial.accelerator import SerialAccelerator
    from weft.sim.transport import DIVISOR

    board = SerialAccelerator(design, divisor=DIVISOR)
    text = export.to_verilog(board, name="board", model=True)
    # In a network core on a board BASE is 0, so comparisons with it are constant.
    return f"/* verilator lint_off UNSIGNED */\n{text}"


# The module under test, and what returns its Verilog: a product core is tested at its streams, a
# network core at the pins of its serial port.
_TOPS = PerKind(product=("weft", _core), network=("board", _board))


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
  weft sim --test test_design.py                  a cocotb file of your own, on Verilator; with
                                                  --waves, its trace (docs/project.md)

The simulated link always has the next word for the core, and always accepts results. Exit code 1 if
a result differs from the golden model, or cycles differ from the cycle model.
"""


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
        help="write a trace of all signals (VCD); without --test, of two small products",
    )
    parser.add_argument(
        "--test", metavar="FILE", type=path("test"),
        help="only run this cocotb file; of a network core (--config), at the pins of a board",
    )
    parser.add_argument(
        "--case", metavar="NAME", help="with --test: run this test of the file; default all"
    )
    add_config(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    _refuse_unused(args)
    if args.test is not None:
        return _test(args)
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
        rows, flags, accuracy = _network(config, show)
        picture = _draw(file, _timeline(flags, rows), config, show)
    from weft.cli.sim_network import layer_table

    problems = layer_table(rows, **accuracy, numbers=config.dtype.upper())
    print(f"Activity of the array over time: {picture}")
    if problems:
        print("weft: error: " + "\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


def _refuse_unused(args):
    if args.network_only and args.test is not None:
        raise OSError("--network-only must be without --test")
    if args.case is not None and args.test is None:
        raise OSError("--case must be with --test")


def _test(args):
    """Run the cocotb file of ``--test``."""
    test, design = check_test(args.test), any_config_of(args)
    from weft.cli.progress import progress
    from weft.sim import tools

    for require in (tools.libpython, tools.verilator, tools.compiler):
        require()
    waves = output_file(Path(args.out) / "weft.vcd") if args.waves else None
    with progress() as show:
        return run_test(design, test, args.case, args.seed, waves, show)


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
    """Run every layer. Returns rows of the table, activity of each cycle, and the accuracies."""
    import numpy as np

    from weft.cli.sim_network import NETWORKS
    from weft.demo import digits_images, digits_network
    from weft.sim.transport import SimTransport

    images, labels = digits_images()
    network = digits_network(NETWORKS[config.dtype].kind)
    program = network.compile(config, activations=True)
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "activity"
        with show.task("building the simulated accelerator"):
            transport = SimTransport(config, activity=trace)
        with program.open(transport) as session:
            task = show.task(f"running {len(images)} images", total=len(program.steps))
            with task as advance:
                scores, records, outputs = session(
                    images, stats=True, activations=True, watch=lambda record: advance()
                )
        flags = np.fromfile(trace, np.uint8)
    with program.open("golden") as model:  # it takes its cycles from the cycle model
        predicted = [record.stats.cycles for record in model(images, stats=True)[1]]
    # A core for integers leaves products of float32 to the host.
    with digits_network("float32").compile(Config()).open("golden") as host:
        float_scores = host(images)
    accuracy, float_accuracy = (
        float(np.mean(found.argmax(axis=1) == labels)) for found in (scores, float_scores)
    )
    outputs = list(outputs.values())
    layers = _golden_layers(network, program, images, outputs)
    cycles = [record.stats.cycles for record in records]
    rows = _rows(config, layers, outputs, cycles, predicted, show)
    accuracies = dict(accuracy=accuracy, float_accuracy=float_accuracy)
    return rows, flags, dict(images=len(images), **accuracies)


def _golden_layers(network, program, images, outputs):
    """The layers by the golden model; each takes the output of the layer before it."""
    from weft.cli.sim_network import NETWORKS
    from weft.models.program_session import read_inputs

    [x] = read_inputs(program, images)[0].values()
    layer = NETWORKS[program.target.array.dtype].layer
    inputs = [x[:, 0], *outputs[:-1]]
    return [layer(*each, program) for each in zip(network.graph.nodes, inputs, strict=True)]


def _rows(config, layers, outputs, cycles, predicted, show):
    """The rows of the table. They also measure each layer as equal products back to back."""
    from weft.cli.bench import equal_products
    from weft.cli.sim_network import LayerRow
    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    rows = []
    columns = zip(layers, outputs, cycles, predicted, strict=True)
    with (
        show.task("measuring the steady state", total=len(layers)) as advance,
        Accelerator(SimTransport(config), config) as accelerator,
    ):
        for number, (layer, y, measured, model) in enumerate(columns, 1):
            (m, k), n = layer.a.shape, layer.b.shape[1]
            interval, equal = equal_products(
                accelerator, layer.a, layer.b, layer.product, **layer.arguments
            )
            rows.append(LayerRow(
                name=f"layer {number}", m=m, k=k, n=n, cycles=measured, predicted=model,
                match=equal and _same(layer.y, y), utilization=m * k * n / interval / config.peak,
            ))
            advance()
    return rows


def _timeline(flags, rows):
    """The activity of the array in the layers of ``rows``, without the loads before them."""
    import numpy as np

    from weft.cli.activity import BUSY, Timeline

    starts = np.cumsum([0, *(row.cycles for row in rows)]).tolist()
    busy = flags[(flags & BUSY) != 0][-starts[-1] :]
    names = [row.name for row in rows]
    return Timeline(busy, tuple(zip(names, starts, strict=False)))


def _same(x, y):
    """Whether two arrays are equal, bit for bit."""
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


# The products of --waves: the second one has a ragged shape.
TRACED = [(16, 16, 16), (13, 7, 9)]


def _waves(config, path, seed, show):
    from weft.cli.selftest_cases import CASES
    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    cases = CASES[config.dtype](config, seed)
    with show.task("building the simulated accelerator with a trace"):
        transport = SimTransport(config, waves=path)
    passed = True
    with Accelerator(transport, config) as accelerator:
        for m, k, n in TRACED:
            with show.task(f"multiplying {m} x {k} x {n}, seed {seed}"):
                a, b = cases.noise(m, k), cases.noise(k, n)
                passed &= _same(accelerator.matmul(a, b), cases.golden(a, b))
    print(f"{path}: all signals, {path.stat().st_size:,} bytes;"
          f" results {'equal golden' if passed else 'DIFFER from golden'}")
    if not passed:
        print("weft: error: results must equal the golden model's", file=sys.stderr)
    return 0 if passed else 1
