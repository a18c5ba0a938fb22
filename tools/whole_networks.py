"""Networks of the kinds that people have: which are one list on a network core, with which bytes.

    python -m tools.whole_networks [--output FOLDER] [KIND ...]

Each kind has networks of random sizes. Memory does not count: the core has the largest one. All
bytes of the outputs are compared with TensorFlow Lite Micro. It has no weights of uint8, and it
does not initialize the border of SPACE_TO_BATCH_ND: networks with them are compared with a product
core, whose host computes all but the products.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tools.network_kinds import KINDS
from tools.network_writer import Writer
from weft.boards.catalog import BOARDS
from weft.models.loading import load
from weft.models.target import NetworkTarget, target_of
from weft.network_core.config import NetworkCoreConfig

__all__ = ["COUNT", "KINDS", "main", "network"]

COUNT = 3  # networks of each kind
BOARD = "ulx3s-85f"


def network(kind: str, number: int) -> bytes:
    """Return the file of a network of a kind, one of `COUNT`."""
    seed = 100 * list(KINDS).index(kind) + number
    side = 12 + 4 * number
    dtype = kind if kind in ("uint8", "int16") else "int8"  # of all maps
    writer = Writer(seed, (1, side, side + 2, 3), dtype)
    outputs = KINDS[kind](writer, number)
    return writer.file(*(outputs if isinstance(outputs, list) else [outputs]))


def core() -> NetworkCoreConfig:
    """Return the core of the board with all units, and the largest memory that a core can have."""
    config = BOARDS[BOARD].built_for("networks").config
    return dataclasses.replace(config, words=config.most_words, lstm=True, int16=True)


def reference(data: bytes) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """Return a function from the inputs of a file to its outputs, as `rows` compares them."""
    from tflite_micro import runtime

    graph = load(data, "net").graph
    has_bytes = any(t.dtype == np.uint8 and t.data is not None for t in graph.tensors)
    if has_bytes or "SPACE_TO_BATCH_ND" in graph.operators:
        session = load(data, "net").compile(target_of(BOARD)).open("golden")
        return lambda inputs: _listed(session(inputs))
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 22)

    def run(inputs):
        for number, values in enumerate(inputs):
            interpreter.set_input(values, number)
        interpreter.invoke()
        return [interpreter.get_output(number) for number in range(len(graph.outputs))]

    return run


def _listed(values):
    return values if isinstance(values, list) else [values]


def equal(data: bytes, program, rng) -> bool:
    """Whether the golden model returns the bytes of the `reference` for three inputs."""
    tensors, run = [program.tensors[number] for number in program.inputs], reference(data)
    with program.open("golden") as session:
        for _ in range(3):
            inputs = [_random(rng, tensor) for tensor in tensors]
            pairs = zip(run(inputs), _listed(session(inputs)), strict=True)
            if not all(
                found.dtype == expected.dtype and np.array_equal(found, expected)
                for expected, found in pairs
            ):
                return False
    return True


def _random(rng, tensor):
    limits = np.iinfo(tensor.dtype)
    return rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)


def rows(kinds=tuple(KINDS)):
    """Yield for each network its kind, number, lists, operators of the host, cycles, equality."""
    target, rng = NetworkTarget(BOARD, core()), np.random.default_rng(1)
    for kind in kinds:
        for number in range(COUNT):
            data = network(kind, number)
            program = load(data, f"{kind} {number}").compile(target)
            host = ", ".join(dict.fromkeys(step.operators[0] for step in program.host))
            yield (
                kind, number, len(program.segments), host or "-", program.cycles,
                "yes" if equal(data, program, rng) else "NO",
            )


def _write(kinds, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for number in range(COUNT):
            (folder / f"{kind.replace(', ', '-').replace(' ', '-')}-{number}.tflite").write_bytes(
                network(kind, number)
            )


def main(arguments: list[str]) -> int:
    """Print the networks of the kinds, by default of all; the exit code 1 if bytes differ."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.whole_networks", description=__doc__.splitlines()[0],
        epilog=f"The kinds are: {'; '.join(KINDS)}.",
    )
    parser.add_argument("kinds", metavar="KIND", nargs="*", help="default: all kinds")
    parser.add_argument(
        "--output", metavar="FOLDER", type=Path, help="write the networks as .tflite files, too"
    )
    args = parser.parse_args(arguments)
    for kind in args.kinds:
        if kind not in KINDS:
            parser.error(f"KIND must be one of: {'; '.join(KINDS)}; not {kind}")
    kinds, found = tuple(args.kinds) or tuple(KINDS), []
    if args.output:
        _write(kinds, args.output)
    for kind, number, lists, host, cycles, same in rows(kinds):
        print(
            f"{kind:<18}{number}  lists {lists}  host: {host:<30} {cycles:>9,} {same}", flush=True
        )
        found.append((lists == 1 and host == "-", same == "yes"))
    whole = sum(is_whole for is_whole, _ in found)
    print(f"{whole} of {len(found)} networks are one list without an operator of the host.")
    return int(not all(same for _, same in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
