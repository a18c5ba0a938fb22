"""``weft quantize``: makes an int8 network of a float ONNX file, and shows what that changed."""

import math
from pathlib import Path

from weft.cli.network_inputs import (
    add_normalization,
    layout_of,
    media_files,
    normalization_of,
    refuse_normalization,
)
from weft.cli.options import number, path
from weft.cli.progress import progress, slow_task
from weft.files import output_file, write_bytes
from weft.hints import visible

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "quantize a float ONNX network to int8"
DESCRIPTION = """\
Quantize a float ONNX network to int8 after training, with onnxruntime: weights per channel, ranges
of the activations from calibration data, in the form QDQ. Then run the float and the quantized
network on the same data, and print how well each tensor agrees: SQNR (signal to quantization noise
ratio, in dB; higher is better) and cosine (1 is equal), and the share of samples with equal top-1.

  weft quantize net.onnx --data calib.npz -o net.int8.onnx
  weft quantize net.onnx --data calib.npz -o net.int8.onnx --method entropy --min-top1 0.98
  weft quantize net.onnx --data calib.npz -o net.int4.onnx --weights int4

The data has one array for each input, with the samples along its first axis (numpy.savez), or a
single array (numpy.save), or is a folder of pictures or sounds. Exit code 1 if top-1 agrees in
fewer samples than --min-top1. Weights of int4 are codes of 4 bits with a scale of 1 to 15 for
8 input channels. The file has their products as int8; a network core with int4 packs them.
"""
METHODS = ["min-max", "entropy", "percentile"]
WEIGHTS = ["int8", "int4"]
WEAK = 20  # dB of SQNR below which a tensor is highlighted


def add(parser):
    """Add the arguments of ``weft quantize``."""
    parser.add_argument("network", type=path("network"), help="the float network, an .onnx file")
    parser.add_argument(
        "--data", metavar="FILE", required=True, type=path("data"),
        help="calibration data: an .npz or .npy file, or a folder of pictures or sounds",
    )
    add_normalization(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, type=path("output"),
        help="the quantized network to write",
    )
    parser.add_argument(
        "--method", choices=METHODS, default=METHODS[0],
        help="how ranges are taken: all values, least entropy lost, or the 99.999 percentile;"
             " default min-max",
    )
    parser.add_argument(
        "--weights", choices=WEIGHTS, default=WEIGHTS[0],
        help="type of the weights; default int8",
    )
    parser.add_argument(
        "--min-top1", metavar="SHARE", type=number("min-top1", 0, 1), default=0.0,
        help="share of samples, 0 to 1, whose top-1 must agree; default 0",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.models.onnx.agreement import compare
    from weft.models.onnx.int4 import with_int4_weights
    from weft.models.onnx.quantize import Feeds, prepare, quantize
    from weft.models.onnx.source import self_contained

    source, output = Path(args.network), output_file(args.output, args.network, args.data)
    Path(args.data).stat()  # a missing file is an error before any work
    data = self_contained(source.read_bytes(), source.name, source.parent)
    with progress() as show:
        with show.task("preparing the float network"):
            prepared = prepare(data, source.name)
        feeds = Feeds(_arrays(args, prepared), prepared, args.data)
        with show.task("calibrating", total=len(feeds)) as advance:
            quantized = quantize(
                prepared, source.name, feeds, method=args.method, advance=advance
            )
        counts = None
        if args.weights == "int4":
            with show.task("changing the weights to int4"):
                quantized, *counts = with_int4_weights(quantized)
        with show.task("comparing", total=len(feeds)) as advance:
            agreement = compare(prepared, quantized, feeds, advance=advance)
    write_bytes(output, quantized)
    _print(agreement, source.name, len(data), output, feeds.samples, args.weights)
    if counts:
        print("weights of int4: {:,} of {:,}; the others stay int8".format(*counts))
    return 0 if agreement.top1 >= args.min_top1 else 1


def _arrays(args, model):
    """The calibration data: arrays of a file, or of all files of a folder."""
    import numpy as np

    from weft.models.errors import ModelError
    from weft.models.media import read_media
    from weft.models.onnx.quantize import input_tensors, read_arrays

    given = normalization_of(args)
    if not Path(args.data).is_dir():
        refuse_normalization(args)
        return read_arrays(args.data)
    tensor, *others = input_tensors(model)
    if others:
        raise ModelError(f"{args.data}: a network with {1 + len(others)} inputs needs an .npz file")
    layout = layout_of(tensor, "onnx")
    files, values = media_files(args.data), []
    with slow_task("reading the calibration data", len(files)) as advance:
        for file in files:
            values.append(read_media(file, tensor, layout, given))
            advance()
    return {tensor.name: np.concatenate(values)}


def _print(agreement, name, size, output, samples, weights):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("tensor", overflow="fold")
    table.add_column("operator")
    table.add_column("SQNR (dB)", justify="right")
    table.add_column("cosine", justify="right")
    for row in agreement.rows:
        sqnr = "equal" if math.isinf(row.sqnr) and row.sqnr > 0 else f"{row.sqnr:.1f}"
        style = "yellow" if row.sqnr < WEAK else None
        names = (Text(visible(text)) for text in (row.name, row.operator))
        table.add_row(*names, sqnr, f"{row.cosine:.5f}", style=style)
    name = visible(name)
    kind = "int8" if weights == "int8" else f"int8 with weights of {weights}"
    print(f"{name}: float against {kind}, {samples} samples")
    console.print(table)
    print(f"top-1 agrees in {agreement.top1:.1%} of the results")
    print(f"{visible(str(output))}: {output.stat().st_size:,} bytes ({name}: {size:,} bytes)")
