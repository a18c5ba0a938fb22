"""``weft run``: runs a network on a core, and compares it with its runtime."""

import contextlib
import dataclasses

from weft.cli import language
from weft.cli.network_inputs import (
    DEFAULT_BOARD,
    add_batch,
    add_inputs,
    add_network,
    add_target,
    batch_of,
    compile_slowly,
    load_network,
    network_target,
    target_named,
)
from weft.cli.network_values import (
    find_files,
    finish,
    output_files,
    prepared,
    refuse_labels,
    repeat,
    write_outputs,
)
from weft.cli.options import add_baud, check_connection, integer, open_by_name, path
from weft.cli.progress import slow_task
from weft.design import PRODUCT, PerKind
from weft.files import write_text

__all__ = ["DESCRIPTION", "HELP", "add", "open_core", "refuse_page", "run"]

HELP = "run a network on a core"
DESCRIPTION = """\
Run a network on an accelerator: .tflite, .onnx, or a program file of 'weft compile'. The first line
says what runs on Weft and what on the host.

  weft run kws.tflite
  weft run kws.tflite --on sim --board icebreaker --layers
  weft run kws.tflite --on /dev/ttyUSB1 --input x.npy --output y.npy
  weft run kws.tflite --check tflm
  weft run net.tflite --input photo.png --top 3 --labels names.txt
  weft run net.tflite --input list.csv --repeat 20        accuracy of files with labels, and times
  weft run kws.tflite --board ulx3s-85f --for networks     the whole network on the chip
  weft run stories.weft --prompt "Once upon a time" --temperature 0.8      a language model
  weft run stories.weft --on /dev/ttyUSB1 --prompt "One day"       on a board with a language core
  weft run names.weft --temperature 0.8 --seed 3                   a microGPT

A network that does not fit the memory of a network core runs there product by product: the
core gets each one over the link.

--on is
  golden                   the golden model in numpy, without hardware; the default
  sim                      a simulated core, at its streams
  board                    a simulated board, at the pins of its serial port
  /dev/ttyUSB1, COM3       a board on a serial port
  usb, usb:SERIAL          a board on USB, at pins of its FPGA
  tcp://host:port          a board shared by 'weft serve'

golden, sim and board have the design of --board or --config. For the others these are a check: the
core must have this design; without them, the network is compiled for the core that answers.

Exit code 1 if --check finds a larger difference than the first line allows; with --check float, if
perplexity rises by more than 0.3 %, KL is above 0.002, or fewer than 98 % of greedy tokens agree.
"""
_PLACES = {
    "golden": "the golden model", "sim": "the simulated core", "board": "the simulated board",
}
_SIMULATED = tuple(_PLACES)
_TIMEOUT = 60.0  # seconds without an answer


def add(parser):
    """Add the arguments of ``weft run``."""
    add_network(parser, ".tflite, .onnx, .gguf, .bin, .npz or .weft")
    parser.add_argument(
        "--on", default="golden", metavar="TRANSPORT",
        help="the connection to the core; see above; default golden",
    )
    add_target(parser)
    add_batch(parser)
    add_baud(parser)
    add_inputs(parser)
    parser.add_argument(
        "--output", metavar="FILE", type=path("output"),
        help="write the first output of the network, .npy",
    )
    parser.add_argument(
        "--activations", metavar="FILE", type=path("activations"),
        help="write the output of each operator, .npz with out0, out1 ...",
    )
    parser.add_argument(
        "--top", metavar="K", type=integer("top", 1),
        help="print the K largest values of the first output: the classes",
    )
    parser.add_argument(
        "--labels", metavar="FILE", type=path("labels"),
        help="names of the classes, a line for each; with --top or a .csv list",
    )
    parser.add_argument(
        "--repeat", metavar="N", type=integer("repeat", 1),
        help="run N more times, and print median and 95th percentile of the time of an inference",
    )
    parser.add_argument(
        "--check", choices=["tflm", "litert", "ort", "float"],
        help="compare every byte of the outputs with TFLite Micro, LiteRT or onnxruntime; if one"
             " differs, name the first operator whose output differs; float: perplexity, KL and"
             " equal greedy tokens of a language model, against float32",
    )
    parser.add_argument(
        "--fallback", choices=["allow", "refuse"], default="allow",
        help="refuse: stop if an operator would run in another runtime, or a product on the host;"
             " default allow",
    )
    parser.add_argument(
        "--layers", action="store_true", help="print a line for each step when it has ended"
    )
    parser.add_argument(
        "--html", metavar="FILE", type=path("html"),
        help="write the page of weft report with the measured cycles; for one inference",
    )
    language.add_text(parser)
    language.add_weights(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    check_connection(args.on, args.baud)
    refuse_labels(args)
    output, activations, html = output_files(args)
    target = target_named(args)
    network, program = load_network(args)
    if language.is_language(network or program):
        return language.run(args, network or program)
    language.refuse_text(args)
    target = network_target(target)
    find_files(args)
    network, program, target = _with_target(args, target, network, program)
    with contextlib.ExitStack() as undo:
        transport = None
        if target is None:
            transport, target = _answering(args)
            undo.callback(transport.close)
        if program is None:
            program = _compiled(args, network, target)
        samples, inferences, answers = prepared(args, network, program)
        if html:
            refuse_page(program, inferences)
        core = open_core(args, program, target, transport)
        undo.enter_context(core.session)
        y, records, values = _measured(args, core, samples.x)
        print(f"on {_PLACES.get(args.on, args.on)}: {core.cost(records, inferences)}")
        _say_program(core.connection)
        repeat(args, inferences, lambda: core.session(samples.x))
    outputs = y if isinstance(y, list) else [y]
    write_outputs(output, activations, outputs, values)
    if html:
        from weft.models.report import report

        write_text(html, report(program).with_measured(records).page())
    return finish(
        args, network, program, samples, outputs, answers,
        lambda: values or _activations(args, network, target, samples.x),
    )


def _with_target(args, target, network, program):
    """Return network, program and target: None for what the file, or the options, do not have.

    Without a target, the core that answers is the target.
    """
    from weft.models.errors import ModelError

    if program is None:
        default = DEFAULT_BOARD if args.on in _SIMULATED else None
        return network, None, _with_memory(args, target or (default and _target_of(default)))
    if args.check:
        raise ModelError(f"--check needs the network, not the program {args.network}")
    for name in ("activations", "batch"):
        if getattr(args, name):
            raise ModelError(f"--{name} needs the network, not the program {args.network}")
    own = program.target
    if target is not None and (target.array, target.config) != (own.array, own.config):
        raise ModelError(
            f"{args.network} is compiled for {own.name} ({own.array.hash:08x}), not for"
            f" {target.name} ({target.array.hash:08x})"
        )
    return None, program, own


def _with_memory(args, target):
    """Return the target of a simulated board, with the timing of the memory that it has."""
    if target is None or args.on != "board":
        return target
    return _ON_BOARD.of(target)(target)


def _simulated(target):
    from weft.sim.sdram import simulated_memory

    return dataclasses.replace(target, memory=simulated_memory(target.config))


_ON_BOARD = PerKind(product=lambda target: target, network=_simulated)


def _compiled(args, network, target):
    """Compile the network; one that does not fit a network core runs there product by product."""
    from weft.models.errors import ModelError, UnfitError

    keep = args.activations is not None
    try:
        return compile_slowly(network, target, activations=keep, batch=batch_of(args))
    except UnfitError as error:
        if args.html:
            raise ModelError(f"--html needs a network that fits the core; {error}") from error
        return _single_products(network, target, keep, error)


def _single_products(network, target, activations, error):
    """Compile a network that does not fit, by this error, so that the core gets each product."""
    from weft.host.emulated import product_config

    single = dataclasses.replace(target, config=product_config(target.config), by_lists=True)
    program = compile_slowly(network, single, activations=activations)
    if any(step.placement.on_weft for step in program.steps):
        print(f"{error}. The products run on the core one by one, over the link.")
    else:
        print(f"{error}. The core has no product to compute.")
    return program


def _measured(args, core, x):
    """Run the network once; return outputs, records of the steps, and outputs of operators."""
    program = core.session.program
    if args.layers:
        print(core.HEAD)
    with slow_task(f"running {program.name}", total=core.total) as advance:
        def watch(record):
            advance()
            if args.layers:
                print(core.line(record), flush=True)

        keep = program.keeps_maps
        y, records, *kept = core.session(x, stats=True, activations=keep, watch=watch)
    return y, records, kept[0] if keep else {}


def _activations(args, network, target, x):
    """Return the outputs of all operators, from a run that keeps them; None if they do not fit."""
    from weft.models.errors import UnfitError

    try:
        program = compile_slowly(network, target, activations=True)
    except UnfitError:
        print("The memory has no space for the outputs of all operators.")
        return None
    with open_core(args, program, target, None).session as session:
        _, values = session(x, activations=True)
    return values


def _target_of(name):
    from weft.models.target import target_of

    return target_of(name)


def _open(args, config):
    """Return the transport; a simulated core has ``config``."""
    from weft.cli.progress import progress

    with progress() as show:
        return open_by_name(args.on, config, args.baud, show)


def _answering(args):
    """Return the transport, and the target that the core at its other end describes."""
    from weft.host.core_session import CoreSession, refuse_language_core
    from weft.host.network_driver import NetworkDriver

    transport = _open(args, None)
    try:
        if refuse_language_core(transport, _TIMEOUT) == PRODUCT:
            return transport, _target_of(CoreSession(transport, None, _TIMEOUT).config)
        return transport, _target_of(NetworkDriver(transport, timeout=_TIMEOUT).config)
    except BaseException:
        transport.close()
        raise


# The core of the command, as its kind runs a program.

def open_core(args, program, target, transport):
    """Open a session for a program on a core; return what runs it.

    It has ``session``, and ``connection``, which executes lists or products.

    Parameters
    ----------
    args : argparse.Namespace
    program : CompiledNetwork
        For a product core, it may run on a network core: that computes each product by itself.
    target : NetworkTarget
        The core.
    transport : Transport or None
        The connection to the core, if it is open.
    """
    connection, lists = _CONNECTIONS.of(target)(args, target.config, transport), None
    try:
        if program.kind != target.kind:
            from weft.host.emulated import ListTransport

            connection = ListTransport(connection)
            lists = connection.products.counters
        with slow_task("writing the program to the core") as task:
            if hasattr(connection, "watch"):
                connection.watch = task.watch
            core = _RUNS.of(program)(program.open(connection), lists)
    except BaseException:
        connection.close()
        raise
    core.connection = connection
    return core


def _say_program(connection):
    """Print how much of a program was sent, if it lies in a memory behind a link."""
    sent, found = (getattr(connection, f"program_{name}", 0) for name in ("sent", "found"))
    if sent or found:
        print(f"program memory: {sent:,} bytes sent, {found:,} bytes were there")


def refuse_page(program, inferences: int) -> None:
    """Raise ModelError if a page would have the cycles of several inferences."""
    from weft.models.errors import ModelError

    if inferences > 1 and _RUNS.of(program).ADDS_INFERENCES:
        raise ModelError(f"--html needs one inference, not {inferences}")


def _transport(args, config, transport):
    """Return the transport to a product core; a simulated core has ``config``."""
    return _open(args, config) if transport is None else transport


def _runner(args, config, transport):
    """Return what executes lists on a network core."""
    from weft.host.network_driver import NetworkDriver
    from weft.host.transport import TransportError

    if args.on == "golden":
        from weft.models.network_core.runners import GoldenRunner

        return GoldenRunner(config)
    if args.on.startswith(("uio:", "mem:")):
        try:
            return NetworkDriver(args.on, config)
        except ValueError as error:
            raise TransportError(str(error)) from error
    if args.on == "sim":
        from weft.cli.progress import progress
        from weft.sim.network_core import SimulatedRunner

        with progress():
            return SimulatedRunner(config)
    if transport is None:
        transport = _open(args, config)
    try:
        return NetworkDriver(transport, config)
    except BaseException:
        transport.close()
        raise


class _ProductCoreRun:
    """A run on a product core, or of the products of a network on a network core.

    Parameters
    ----------
    session : Session
    lists : ListCounters or None
        Of a network core; the stream of commands is only emulated then.
    """

    HEAD = (
        f"{'position':>8}  {'operator':<28} {'products':<24} {'predicted':>10} {'cycles':>10}"
        f" {'bytes in':>10} {'bytes out':>10} {'core ms':>9} {'host ms':>8}"
    )
    ADDS_INFERENCES = True  # the cycles of a step are the ones of all inferences

    def __init__(self, session, lists):
        self.session = session
        self.total = len(session.program.steps)
        self._lists = lists

    def line(self, record) -> str:
        """The line of a step."""
        step, stats = record.step, record.stats
        name = "+".join(step.operators)
        shapes = ", ".join(f"{p.m}x{p.k}x{p.n} *{p.count}" for p in step.products) or "host"
        text = f"{min(step.position):>8}  {name:<28} {shapes:<24}"
        if stats is None:
            text += " " * 44
        elif self._lists is not None:
            text += f" {'':>10} {stats.cycles:>10,} {'':>21}"
        else:
            text += (
                f" {step.estimate.cycles:>10,} {stats.cycles:>10,} {stats.bytes_in:>10,}"
                f" {stats.bytes_out:>10,}"
            )
        host = record.seconds - record.core_seconds
        return f"{text} {1e3 * record.core_seconds:>9.2f} {1e3 * host:>8.2f}"

    def cost(self, records, inferences) -> str:
        """The line with the cost of all steps."""
        host = sum(record.seconds - record.core_seconds for record in records)
        core = sum(record.core_seconds for record in records)
        seconds = f"{core:.3f} s core and connection, {host:.3f} s host"
        if self._lists is not None:
            lists = self._lists
            return (
                f"{lists.cycles():,} cycles of {lists.lists:,} lists; {lists.sent:,} bytes to the"
                f" core, {lists.received:,} from it; {seconds}"
            )
        found = [record.stats for record in records if record.stats]
        cycles, starved, sent, received = (
            sum(getattr(stats, name) for stats in found)
            for name in ("cycles", "starved", "bytes_in", "bytes_out")
        )
        each = " for one" if inferences > 1 else ""
        return (
            f"{cycles:,} cycles, {starved:,} of them waiting for operands (predicted"
            f" {self.session.program.estimate.cycles:,}{each}); {sent:,} bytes to the core,"
            f" {received:,} from it; {seconds}"
        )


class _NetworkCoreRun:
    """A run of a whole network on a network core.

    Parameters
    ----------
    session : NetworkCoreSession
    lists : None
    """

    HEAD = (
        f"{'position':>8}  {'operator':<28} {'output':>14} {'jobs':>5} {'predicted':>10}"
        f" {'cycles':>10} {'host ms':>8}"
    )
    ADDS_INFERENCES = False
    total = None  # the layers of a list end together

    def __init__(self, session, lists):
        self.session = session
        self._host, self._renamed = set(session.program.host), set(session.program.renamed)

    def line(self, record) -> str:
        """The line of a step."""
        from weft.models.program import joined_operators

        step = record.step
        text = f"{min(step.position):>8}  {joined_operators(step.operators):<28}"
        if step in self._host:
            place, sizes = "host", " " * 27
            if step.estimate is not None:
                place = "products"
                sizes = f"{step.estimate.jobs:>5} {step.estimate.cycles:>10,} {_counted(record)}"
            return f"{text} {place:>14} {sizes} {1e3 * record.seconds:>8.2f}"
        size = f"{step.place.height}x{step.place.width}x{step.place.channels}"
        if step in self._renamed:
            return f"{text} {size:>14}"
        return f"{text} {size:>14} {step.jobs:>5} {step.cycles:>10,} {_counted(record)}"

    def cost(self, records, inferences) -> str:
        """The line with the cycles of all lists, their bytes, and the time of the host."""
        from weft.models.report.placement import link_bytes

        program, cycles = self.session.program, self.session.cycles
        sent, received = link_bytes(program)
        host = sum(record.seconds for record in records)
        counted = "cycles are not counted" if cycles is None else f"{cycles:,} cycles"
        each = " for one inference" if inferences > 1 else ""
        return (
            f"{counted} (predicted {program.cycles:,}), {sent:,} bytes to the core, {received:,}"
            f" from it{each}; {host:.3f} s host"
        )


def _counted(record):
    """The cycles of a record, as a column."""
    return f"{'' if record.cycles is None else f'{record.cycles:,}':>10}"


_CONNECTIONS = PerKind(product=_transport, network=_runner)
_RUNS = PerKind(product=_ProductCoreRun, network=_NetworkCoreRun)
