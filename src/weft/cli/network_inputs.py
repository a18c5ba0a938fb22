"""What ``weft run`` takes: a network and its target; arrays, pictures, sounds, random values."""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.cli.options import integer, path
from weft.cli.progress import slow_task

__all__ = [
    "DEFAULT_BOARD", "Samples", "add_batch", "add_inputs", "add_network", "add_normalization",
    "add_target", "batch_of", "compile_for", "compile_slowly", "layout_of", "load_network",
    "media_files", "network_target", "normalization_of", "refuse_normalization", "samples_of",
    "target_named",
]

def add_network(parser, files: str) -> None:
    """Add the argument ``network``, of these kinds of files, and ``--shape`` to ``parser``."""
    parser.add_argument("network", type=path("network"), help=f"a {files} file")
    parser.add_argument(
        "--shape", metavar="NAME=SIZES", action="append", default=[], type=_shape,
        help="shape of an input of an .onnx file that has sizes of any value: x=1,3,224,224;"
             " once for each such input",
    )
    parser.add_argument(
        "--tokenizer", metavar="FILE", type=path("tokenizer"),
        help="the tokenizer of a language model in a .bin file; default tok512.bin, for 512 tokens,"
             " or tokenizer.bin in its folder",
    )


def load_network(args):
    """Read the file that the arguments name: return the network or None, the program or None.

    A .weft file has a program, any other file has a network. Either may be a language model:
    `weft.cli.language.is_language`.
    """
    import weft
    from weft.models.language.program import LanguageProgram
    from weft.models.program import CompiledNetwork

    with slow_task(f"reading {args.network}"):
        found = weft.load(args.network, shapes=dict(args.shape), tokenizer=args.tokenizer)
    is_program = isinstance(found, CompiledNetwork | LanguageProgram)
    return (None, found) if is_program else (found, None)


def _shape(text):
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", sizes):
        raise argparse.ArgumentTypeError(
            f"shape must be a name and sizes, as in x=1,3,224,224, not {text[:40]!r}"
        )
    return name, tuple(map(int, sizes.split(",")))


DEFAULT_BOARD = "ulx3s-85f"


def add_target(parser, *, default: bool = True) -> None:
    """Add ``--board`` and ``--config``, of which at most one may be given, and ``--for``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--board", metavar="NAME",
        help="a board, see weft boards; or a board file (.py)"
        + (f"; default {DEFAULT_BOARD}" if default else ""),
    )
    group.add_argument(
        "--config", metavar="FILE", type=path("config"),
        help="a TOML file of Config fields, for a core without a board; with a table"
             " [network_core]: a network core",
    )
    parser.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="the board's network core: networks, networks-fast with less memory and a faster"
             " clock, networks-sdram for large networks, batch1 for fully connected layers, or"
             " networks-onnx for ONNX files; see weft boards",
    )


def add_batch(parser) -> None:
    """Add ``--batch`` to ``parser``."""
    parser.add_argument(
        "--batch", metavar="INT", type=integer("batch", 1, 0xFFFF),
        help="inferences that a network core computes in each list, with maps of their own;"
             " default 1",
    )


def batch_of(args) -> int:
    """The inferences of a list."""
    return 1 if args.batch is None else args.batch


def target_named(args):
    """The NetworkTarget that the options name, or None; `network_target` for a network."""
    from weft.models.errors import ModelError
    from weft.models.target import board_target, target_of_file

    if args.config is not None:
        if args.purpose is not None:
            raise ModelError("--for must be with --board, not with --config")
        return target_of_file(args.config)
    board = args.board or (None if args.purpose is None else DEFAULT_BOARD)
    return None if board is None else board_target(board, args.purpose)


def network_target(target):
    """The target of a network, unchanged. Raises ModelError for a language core."""
    from weft.models.target import target_of

    return None if target is None else target_of(target)


_OTHER_KIND = (
    "a product core (no --for, no table [network_core]), which gets each product over the link,"
    " as this core does with 'weft run'"
)


def compile_for(args, network, target):
    """Compile a network for a target of `weft.models.target.target_of`.

    Raises UnfitError with the numbers, and with other cores that run the network, if it does not
    fit a network core.
    """
    from weft.models.errors import UnfitError
    from weft.models.target import target_of

    found = target_of(target)
    try:
        return compile_slowly(network, found, batch=batch_of(args))
    except UnfitError as error:
        ways = [_OTHER_KIND, *_larger(args, network, found)]
        raise UnfitError(f"{error}. What runs it: {'; '.join(ways)}") from error


def compile_slowly(network, target, **options):
    """Compile a network for a NetworkTarget, with the options of its ``compile``.

    It is shown on the standard error if it takes over 3 seconds, with the remaining time.
    """
    with slow_task(f"compiling {network.name} for {target.name}") as task:
        return network.compile(target, watch=task.watch, **options)


def _larger(args, network, target):
    """Yield the smallest core of a board with more memory, or another rounding, that it fits."""
    from weft.models.errors import ModelError
    from weft.models.target import board_cores

    for core in board_cores():
        same = core.array.requantize == target.array.requantize
        if same and core.config.memory_bytes <= target.config.memory_bytes:
            continue
        try:
            program = compile_slowly(network, core, batch=batch_of(args))
        except ModelError:
            continue
        yield (
            f"the core {core.name}: the network needs {program.memory_used:,} bytes of its"
            f" {core.config.memory_bytes:,}"
        )
        return


_TYPES = ".npy, .npz, .png, .jpg, .bmp, .wav, a folder of pictures or sounds, or a .csv list"


@dataclass(frozen=True)
class Samples:
    """The inputs of a run.

    Attributes
    ----------
    x : array, list of them, or dict of them
        As for a session.
    names : list of str
        Names of the files of pictures or sounds, one for each inference; empty for arrays.
    labels : list of str
        The class of each inference, of a list; empty without one.
    """

    x: Any
    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def add_inputs(parser) -> None:
    """Add ``--input`` and what explains it to ``parser``."""
    parser.add_argument(
        "--input", metavar="FILE", type=path("input"),
        help=".npy, or .npz with an array for each input by its name; the first axis may be a batch"
             " of inferences. Or a picture (.png, .jpg, .bmp), a sound (.wav), a folder of them, or"
             " a .csv list with rows file,label, which prints the accuracy. Default: random values",
    )
    add_normalization(parser)
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="seed of random inputs; 0 or more, default 1",
    )


def add_normalization(parser) -> None:
    """Add ``--mean`` and ``--std`` to ``parser``."""
    parser.add_argument(
        "--mean", metavar="NUMBERS", type=_numbers("mean"),
        help="mean of a picture or a sound, one number or one for each channel: 127.5 or"
             " 123,116,103; values are (value - mean) / std. Default: that of the metadata of a"
             " .tflite file, or 0..255 is the range of the input",
    )
    parser.add_argument(
        "--std", metavar="NUMBERS", type=_numbers("std"),
        help="standard deviation of a picture or a sound, with --mean",
    )


def _numbers(name):
    def convert(text):
        import argparse
        import math

        try:
            values = tuple(float(part) for part in text.split(","))
        except ValueError:
            values = (math.nan,)
        if not all(map(math.isfinite, values)) or name == "std" and not all(values):
            rule = "numbers other than 0" if name == "std" else "numbers"
            raise argparse.ArgumentTypeError(f"{name} must be {rule}, not {text!r:.40}")
        return values

    return convert


def samples_of(args, network, program) -> Samples:
    """Return the inputs that the arguments name; ModelError if they cannot be read."""
    from weft.models.errors import ModelError
    from weft.models.media import MEDIA, read_list

    tensors = [program.tensors[number] for number in program.inputs]
    is_media = args.input is not None and (
        Path(args.input).is_dir() or Path(args.input).suffix.lower() in (*MEDIA, ".csv")
    )
    if not is_media:
        refuse_normalization(args)
        return Samples(_random(args, tensors) if args.input is None else _arrays(args.input))
    given = normalization_of(args)
    if len(tensors) != 1:
        raise ModelError(
            f"{args.input}: the network must have one input for pictures and sounds, not"
            f" {len(tensors)}"
        )
    source, labels = Path(args.input), []
    if source.suffix.lower() == ".csv":
        listed = read_list(source)
        files, labels = list(listed.files), list(listed.labels)
    elif source.is_dir():
        files = media_files(source)
    else:
        files = [source]
    x = _media(given, network, program, tensors[0], files)
    return Samples(x, [file.name for file in files], labels)


def normalization_of(args):
    """Return the normalization of the options, or None; ModelError if only one is given."""
    from weft.models.errors import ModelError
    from weft.models.media import Normalization

    if (args.mean is None) != (args.std is None):
        raise ModelError("--mean and --std must be given together")
    return None if args.mean is None else Normalization(args.mean, args.std)


def refuse_normalization(args) -> None:
    """Raise ModelError if a normalization is given for arrays, which have none."""
    from weft.models.errors import ModelError

    for name in ("mean", "std"):
        if getattr(args, name) is not None:
            raise ModelError(f"--{name} must be with a picture or a sound as --input")


def media_files(folder) -> list[Path]:
    """Return the pictures and sounds of a folder, by name; ModelError without any."""
    from weft.models.errors import ModelError
    from weft.models.media import MEDIA

    files = sorted(file for file in Path(folder).iterdir() if file.suffix.lower() in MEDIA)
    if not files:
        raise ModelError(f"{folder}: the folder must have files of {', '.join(MEDIA)}")
    return files


def layout_of(tensor, source: str) -> str:
    """Return the order of the axes of a picture: ONNX has the channels first, if it can be so."""
    first = source == "onnx" and len(tensor.shape) == 4 and tensor.shape[1] in (1, 3, 4)
    return "NCHW" if first else "NHWC"


def _media(given, network, program, tensor, files):
    """All files as one array, inferences along the first axis."""
    import numpy as np

    from weft.models.errors import ModelError
    from weft.models.media import MEDIA, read_media

    if given is None and program.source == "tflite" and network is not None:
        from weft.models.tflite.file import normalization_of as of_file

        given = of_file(network.data)
    layout = layout_of(tensor, program.source)
    values = []
    with slow_task("reading the inputs", len(files)) as advance:
        for file in files:
            if file.suffix.lower() in MEDIA:
                values.append(read_media(file, tensor, layout, given))
            elif file.suffix.lower() == ".npy":
                values.append(np.asarray(_arrays(file)).reshape(tensor.shape))
            else:
                raise ModelError(f"{file}: must be a file of .npy, {', '.join(MEDIA)}")
            advance()
    if len(values) > 1 and tensor.shape[:1] != (1,):
        raise ModelError(
            f"input {tensor.name} must have a first axis of 1 for several files, not {tensor.shape}"
        )
    if given is not None:
        numbers = (", ".join(f"{n:g}" for n in part) for part in (given.mean, given.std))
        print("values are (value - {}) / {}".format(*numbers))
    elif values[0].dtype.kind in "iu":
        print(f"values 0..255 are the range of {tensor.dtype}")
    return np.concatenate(values)


def _arrays(file):
    """The arrays of a file of numpy's."""
    import zipfile
    import zlib

    import numpy as np

    from weft.models.errors import ModelError

    try:
        with open(file, "rb") as opened:
            found = np.load(opened, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            with found:
                return {name: found[name] for name in found.files}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        text = str(error).partition("\n")[0]
        if "pickle" in text:  # numpy takes every other file for one, and tells how to load it
            text = "it holds something else than arrays of numbers"
        raise ModelError(f"{file} must be {_TYPES}: {text}") from error


def _random(args, tensors):
    import numpy as np

    rng = np.random.default_rng(args.seed)
    print(f"random inputs, seed {args.seed}")
    return [_random_values(rng, tensor) for tensor in tensors]


def _random_values(rng, tensor):
    import numpy as np

    if tensor.dtype.kind in "iu" and tensor.dtype.itemsize <= 2:
        limits = np.iinfo(tensor.dtype)
        return rng.integers(limits.min, limits.max, tensor.shape, tensor.dtype, endpoint=True)
    if tensor.dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(tensor.dtype)
    return np.zeros(tensor.shape, tensor.dtype)
