"""``weft run``: runs a network on a core, and compares it with its runtime."""

import contextlib
import dataclasses

from weft.cli.argument_types import integer, path
from weft.cli.network_compilation import compiled_slowly
from weft.cli.network_file import add_network, load_network
from weft.cli.network_inputs import add_inputs
from weft.cli.network_target import (
    DEFAULT_BOARD,
    add_batch,
    add_target,
    batch_of,
    target_named,
)
from weft.cli.network_values import finish, prepared, repeat, write_outputs
from weft.cli.output_paths import output_file
from weft.cli.progress import slow_task
from weft.cli.run_cores import open_core, refuse_page
from weft.cli.transports import add_baud, check_baud, open_by_name
from weft.files import write_text

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

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

A network that does not fit the memory of a network core runs there product by product: the
core gets each one over the link.

--on is
  golden                   the golden model in numpy, without hardware; the default
  sim                      a simulated core, at its streams
  board                    a simulated board, at the pins of its serial port
  /dev/ttyUSB1, COM3       a board on a serial port
  tcp://host:port          a board shared by 'weft serve'

golden, sim and board have the design of --board or --config. For the others these are a check: the
core must have this design; without them, the network is compiled for the core that answers.

Exit code 1 if --check finds a larger difference than the first line allows.
"""
_SIMULATED = "golden", "sim", "board"
_TIMEOUT = 60.0  # seconds without an answer


def add(parser):
    """Add the arguments of ``weft run``."""
    add_network(parser, ".tflite, .onnx or .weft")
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
        "--check", choices=["tflm", "litert", "ort"],
        help="compare every byte of the outputs with TFLite Micro, LiteRT or onnxruntime; if one"
             " differs, name the first operator whose output differs",
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


def run(args) -> int:
    """Run the command; return its exit code."""
    _refuse_unused(args)
    output, activations, html = (
        name and output_file(name) for name in (args.output, args.activations, args.html)
    )
    network, program, target = _load(args)
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
        print(core.cost(records, inferences))
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


def _refuse_unused(args):
    """Raise ModelError for an option that has no effect."""
    from weft.models.errors import ModelError

    check_baud(args.baud, args.on)
    if args.labels and not args.top and not (args.input or "").lower().endswith(".csv"):
        raise ModelError("--labels must be with --top, or with a .csv list as --input")


def _load(args):
    """Return network, program and target: None for what the file, or the options, do not have.

    Without a target, the core that answers is the target.
    """
    from weft.models.errors import ModelError

    target = target_named(args)
    network, program = load_network(args)
    if program is None:
        default = DEFAULT_BOARD if args.on in _SIMULATED else None
        return network, None, target or (default and _target_of(default))
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


def _compiled(args, network, target):
    """Compile the network; one that does not fit a network core runs there product by product."""
    from weft.models.errors import ModelError, UnfitError

    keep = args.activations is not None
    try:
        return compiled_slowly(network, target, activations=keep, batch=batch_of(args))
    except UnfitError as error:
        if args.html:
            raise ModelError(f"--html needs a network that fits the core; {error}") from error
        return _single_products(network, target, keep, error)


def _single_products(network, target, activations, error):
    """Compile a network that does not fit, by this error, so that the core gets each product."""
    from weft.host.list_transport import product_config

    single = dataclasses.replace(target, config=product_config(target.config), by_lists=True)
    program = compiled_slowly(network, single, activations=activations)
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
        program = compiled_slowly(network, target, activations=True)
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
    from weft.host.core_session import CoreSession
    from weft.host.network_driver import NetworkDriver
    from weft.host.recovery import AcceleratorError

    transport = _open(args, None)
    try:
        try:
            return transport, _target_of(CoreSession(transport, None, _TIMEOUT).config)
        except AcceleratorError as error:
            try:
                return transport, _target_of(NetworkDriver(transport, timeout=_TIMEOUT).config)
            except AcceleratorError:
                raise error from None
    except BaseException:
        transport.close()
        raise
