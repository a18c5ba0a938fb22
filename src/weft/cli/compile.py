"""``weft compile``: compiles a network for an accelerator, to a program file."""

import dataclasses

from weft.cli import language
from weft.cli.network_inputs import (
    add_batch,
    add_network,
    add_target,
    compile_for,
    load_network,
    network_target,
    target_named,
)
from weft.cli.options import path
from weft.design import PerKind
from weft.files import output_file, output_folder, write_bytes

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "compile a network to a program file"
DESCRIPTION = """\
Compile a network for an accelerator. The program file has all that 'weft run' needs, without code:
weights and parameters as the core takes them, the schedule, and predicted cycles. Running it needs
neither the network's file nor a package that reads it.

  weft compile kws.tflite --board ulx3s-85f -o kws.weft
  weft run kws.weft --on /dev/ttyUSB1
  weft compile stories260K.gguf -o stories.weft
  weft compile stories15M.bin --weights int4 -o stories15M.weft
  weft compile kws.tflite --config ip/config.toml -o kws.weft --c firmware/kws

A language model has no target yet. The last command also writes C code, with which an SoC runs the
network without Python. It calls the driver of the IP kit in the folder ip, which 'weft generate
--bus BUS -o ip' writes.
"""


def add(parser):
    """Add the arguments of ``weft compile``."""
    add_network(parser, ".tflite, .onnx, .gguf, .bin or .npz")
    add_target(parser, default=False)
    add_batch(parser)
    language.add_weights(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, type=path("output"),
        help="the program file to write, .weft",
    )
    parser.add_argument(
        "--c", metavar="FOLDER", type=path("folder"),
        help="also write C code for the driver of an IP kit: net.c and net.h with their files",
    )
    parser.add_argument(
        "--prefix", metavar="NAME",
        help="with --c: the prefix of the kit; default weft",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.models.errors import ModelError
    from weft.models.report.placement import explanation

    if args.prefix is not None and args.c is None:
        raise ModelError("--prefix must be with --c: it is the prefix of the driver in C")
    output = output_file(args.output, args.network)  # before the work, as it may be an error
    target = target_named(args)
    network, program = load_network(args)  # a .weft file has a program, the others a network
    if language.is_language(network or program):
        return language.compile_model(args, network or program)
    language.refuse_text(args)
    target = network_target(target)
    if target is None:
        raise ModelError("one of the arguments --board --config is required")
    if program is not None:
        raise ModelError(
            f"{args.network} must be a .tflite or .onnx file, not a program: it is compiled for"
            f" {program.target.name} already"
        )
    if args.c is not None:  # C code has all lists in the program memory
        target = dataclasses.replace(target, memory=None)
    program = compile_for(args, network, target)
    sources = {}
    if args.c is not None:
        sources = _C_FILES.of(program)(network, program, args.prefix or "weft")
        folder = output_folder(args.c)
    for line in explanation(program):
        print(line)
    program.save(output)
    print(f"{output}: {output.stat().st_size:,} bytes")
    for name, data in sources.items():
        write_bytes(folder / name, data)
    if sources:
        others = len(sources) - len(("net.c", "net.h"))
        print(f"{folder}: net.c and net.h, with {others} other files")
    return 0


def _product_core_c_files(network, program, prefix):
    from weft.models.c_code import c_files

    return c_files(network.graph, program, prefix)


def _network_core_c_files(network, program, prefix):
    from weft.models.c_code import network_core_c_files

    return network_core_c_files(program, prefix)


# The files of a program, by the kind of its core.
_C_FILES = PerKind(product=_product_core_c_files, network=_network_core_c_files)
