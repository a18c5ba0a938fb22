"""``weft new``: a folder of the user's own, with a design, a test, a program and five verbs."""

from pathlib import Path

from weft.cli.options import path
from weft.files import output_folder
from weft.hints import visible

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "make a project of your own, for a board or of an IP core, or bring one to this Weft"
DESCRIPTION = """\
Make a folder with a design (design.toml), the pins of a board (board.py), a program (run.py), a
cocotb test against the golden model, a view for GTKWave, a Makefile with five verbs (lint, sim,
build, program, run), and a workflow for GitHub. It needs no network connection.

With --network, the core executes this network: a network core of the board if one has the rounding
of the file's runtime, else the product core. The network is copied into the folder. weft quantize
makes the numbers of an .onnx file int8; see weft boards for cores that compute them.

With --template ip, make an IP core in your own Verilog, for no board: a top (top.v) with a product
core and registers of your own, its cocotb test, and the same five verbs. build synthesizes it.

With --template litex, make a SoC by LiteX: a RISC-V processor with a product core on its bus, and
programs in C. sim and run simulate it; build makes the bitstream of a ULX3S-85F. It needs LiteX.

  weft new icebreaker my-project
  weft new --template ip my-core
  weft new --template litex my-soc
  weft new ulx3s-85f my-project --network kws.tflite
  weft new ulx3s-85f my-project --network mlp.tflite --for batch1
  weft new icebreaker my-project --network mlp.int8.onnx
  weft new icebreaker my-project --network kws.tflite --for products
  weft new --update my-project                 renew the files that you have not changed

--update names the files that it keeps because you have changed them. It never replaces design.toml
or the network.
"""
PRODUCTS = "products"  # the purpose of a product core


def add(parser):
    """Add the arguments of ``weft new``."""
    parser.add_argument(
        "names", nargs="*", metavar="BOARD FOLDER",
        help="a board, see weft boards, and the folder; with another --template only the folder;"
             " with --update only the folder, default .",
    )
    parser.add_argument(
        "--template", metavar="NAME",
        help="what to make: board, the default; ip, an IP core in your own Verilog; or litex, a SoC"
             " by LiteX",
    )
    parser.add_argument(
        "--network", metavar="FILE", type=path("network"), help="a .tflite or .onnx file"
    )
    parser.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="with --network: the board's network core, see weft boards; or products, its product"
             " core",
    )
    parser.add_argument(
        "--update", action="store_true", help="bring a project to this Weft"
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.update:
        return _update(args)
    from weft.project.create import TEMPLATES, check_folder, create

    template = "board" if args.template is None else args.template
    if template not in TEMPLATES:
        raise OSError(f"template must be one of {', '.join(TEMPLATES)}, not {template!r}")
    _check(args, template)
    folder = Path(args.names[-1]).resolve()
    facts, network = (_board_facts if template == "board" else _boardless_facts)(args, folder)
    check_folder(folder)
    output_folder(folder.parent)
    names = create(folder, facts, network)
    if network is not None:
        core = f"the network core for {facts.purpose}" if facts.purpose else "the product core"
        print(f"{args.network} runs on {core} of {facts.board}")
    print(f"{visible(str(folder))}: {len(names)} files; type:\n"
          f"  cd {_quoted(args.names[-1])}\n  make lint sim run")
    return 0


def _check(args, template):
    """Raise OSError unless the arguments fit the template."""
    count = len(args.names)
    if template == "board" and count != 2:
        raise OSError(
            f"weft new must have a board and a folder, not {count} names: weft new BOARD FOLDER"
        )
    if template != "board" and count != 1:
        raise OSError(
            f"weft new --template {template} must have one folder and no board, not {count} names:"
            f" weft new --template {template} FOLDER"
        )
    if template != "board" and (args.network is not None or args.purpose is not None):
        option = "--network" if args.network is not None else "--for"
        raise OSError(f"{option} must be without --template {template}: it is for a board")
    if args.purpose is not None and args.network is None:
        raise OSError("--for must be with --network: it chooses the core for a network")


def _board_facts(args, folder):
    """The facts of a project for a board, and the file of its network or None."""
    from weft.boards.catalog import find
    from weft.project.create import Facts, check_folder

    board = find(args.names[0])
    check_folder(folder)  # before a network is compiled
    if args.network is None:
        return Facts(folder.name, board.name), None
    purpose, network = _purpose(board, args.network, args.purpose)
    # run.py finds the file by its suffix, and the contents decide which kind it is.
    name = f"network.{network.graph.source}"
    return Facts(folder.name, board.name, purpose, name), network.data


def _boardless_facts(args, folder):
    """The facts of a project without a board of the catalog; it has no network."""
    from weft.project.create import Facts

    return Facts(folder.name, template=args.template), None


def _quoted(name):
    import shlex

    return shlex.quote(name)


def _purpose(board, file, purpose):
    """The network core of the board that holds a network, "" for the product core; the network.

    Without a purpose, a network of a kind that no network core computes gets the product core.

    Raises UnfitError if the board's network cores do not hold it.
    """
    import weft
    from weft.cli.progress import slow_task
    from weft.models.errors import KindError, ModelError, UnfitError
    from weft.models.loading import NeuralNetwork, refuse_language

    network = weft.load(file)
    refuse_language(network, file)
    if not isinstance(network, NeuralNetwork):
        raise ModelError(f"network must be a .tflite or .onnx file: {file} is compiled already")
    if purpose not in (None, PRODUCTS):
        board.built_for(purpose)  # raises BoardError for an unknown purpose
    cores = [purpose] if purpose else [*board.networks] or [PRODUCTS]
    first = None
    with slow_task("compiling for the board", 1):
        for each in cores:
            try:
                program = network.compile(_target(board, each))
            except KindError as error:
                if purpose is not None:
                    raise KindError(f"{error}; {_others(board, network)}") from error
                continue
            except UnfitError as error:
                first = first or error
                continue
            _check_work(program)
            return "" if each == PRODUCTS else each, network
        if first is None:  # all network cores have another rounding
            _check_work(network.compile(_target(board, PRODUCTS)))
            return "", network
    raise UnfitError(
        f"{first}; weft boards {file} lists the boards that hold it, and --for {PRODUCTS} takes the"
        " product core"
    ) from first


def _others(board, network):
    """What computes a network on a board whose core has the rounding of another runtime."""
    ways = [
        f"--for {purpose} takes such a core" for purpose, design in board.networks.items()
        if (design.config.array.requantize == "onnx") == (network.graph.source == "onnx")
    ]
    return " and ".join([*ways[:1], f"--for {PRODUCTS} takes the product core"])


def _target(board, purpose):
    from weft.models.target import target_of

    return target_of(board.name, None if purpose == PRODUCTS else purpose)


def _check_work(program):
    """Raise ModelError if the core has nothing to compute; the notes say what changes this."""
    from weft.models.errors import ModelError
    from weft.models.report import report

    if not report(program).on_weft:
        notes = "; ".join(program.notes)
        raise ModelError(
            f"{program.name}: a core for {program.target.name} must have an operator to compute,"
            f" and it has none{notes and ': '}{notes}"
        )


def _update(args):
    options = args.network, args.purpose, args.template
    if len(args.names) > 1 or options != (None, None, None):
        raise OSError("--update must be with one folder at most: weft new --update FOLDER")
    from weft.project.create import update

    folder = Path(*args.names or ["."])
    done = update(folder)
    texts = {
        "updated": "updated", "added": "added", "kept": "kept, because you changed it",
        "deleted": "not made again, because you deleted it",
    }
    for key, names in done.items():
        for name in names:
            print(f"{name}: {texts[key]}")
    if not any(done.values()):
        print("all files are as this Weft makes them")
    return 0
