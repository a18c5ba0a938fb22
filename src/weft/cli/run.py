"""``weft run``: runs a network on a core, and compares it with its runtime."""

import contextlib

from weft.cli.argument_types import integer, path
from weft.cli.network_file import add_network, load_network
from weft.cli.network_inputs import add_inputs
from weft.cli.network_target import (
    DEFAULT_BOARD,
    add_batch,
    add_target,
    batch_of,
    target_named,
)
from weft.cli.output_paths import output_file
from weft.cli.progress import slow_task
from weft.cli.run_products import run_products
from weft.cli.transports import add_baud, check_baud, open_by_name
from weft.design import NETWORK

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
    files = [name and output_file(name) for name in (args.output, args.activations, args.html)]
    network, given = _load(args)
    with contextlib.ExitStack() as undo:
        transport = None
        if given is None:
            transport, given = _answering(args)
            undo.callback(transport.close)
        if given.kind == NETWORK:
            from weft.cli.run_network_core import run_network_core

            return run_network_core(args, network, given, transport)
        program = network
        if not args.network.endswith(".weft"):
            with slow_task(f"compiling {network.name} for {given.name}"):
                program = network.compile(
                    given, activations=args.activations is not None, batch=batch_of(args)
                )
        return run_products(
            args, network, program, files, lambda: transport or _open(args, given.config)
        )


def _refuse_unused(args):
    """Raise ModelError for an option that has no effect."""
    from weft.models.errors import ModelError

    check_baud(args.baud, args.on)
    if args.labels and not args.top and not (args.input or "").lower().endswith(".csv"):
        raise ModelError("--labels must be with --top, or with a .csv list as --input")


def _load(args):
    """Return the network or the program, and the target; None to take that of the core."""
    from weft.models.errors import ModelError
    from weft.models.program import CompiledNetwork

    target = target_named(args)
    network = load_network(args)
    if not isinstance(network, CompiledNetwork):
        default = DEFAULT_BOARD if args.on in _SIMULATED else None
        return network, target or (default and _target_of(default))
    if args.check:
        raise ModelError(f"--check needs the network, not the program {args.network}")
    for name in ("activations", "batch"):
        if getattr(args, name):
            raise ModelError(f"--{name} needs the network, not the program {args.network}")
    same = target is None or (target.array, target.config) == (
        network.target.array, network.target.config
    )
    if not same:
        raise ModelError(
            f"{args.network} is compiled for {network.target.name}"
            f" ({network.target.array.hash:08x}), not for {target.name}"
            f" ({target.array.hash:08x})"
        )
    return network, network.target


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
