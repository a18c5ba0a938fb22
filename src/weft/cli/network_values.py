"""Inputs and outputs of ``weft run``: files, random values, comparison with a runtime."""

from weft.cli.network_explanation import explained
from weft.cli.network_fallback import refuse_fallbacks
from weft.files import whole

__all__ = ["check_outputs", "inputs_of", "prepared", "show_outputs", "write_outputs"]

_SHOWN = 10  # values of an output that are printed


def prepared(args, network, program):
    """Print what runs where; return inputs, number of inferences, and the answers of a runtime.

    There are no answers without ``--check``.
    """
    from weft.models.errors import ModelError
    from weft.models.inputs import read_inputs

    for line in explained(program):
        print(line)
    if args.fallback == "refuse":
        refuse_fallbacks(program)
    x = inputs_of(args, program)
    try:
        _, inferences, _ = read_inputs(program, x)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{program.name}: {error}") from error
    if not args.check:
        return x, inferences, []
    from weft.models.oracles import answers

    return x, inferences, answers(args.check, network, program, x)


def inputs_of(args, program):
    """Return the inputs: of a file, or random ones."""
    import zipfile
    import zlib

    import numpy as np

    from weft.models.errors import ModelError

    tensors = [program.tensors[number] for number in program.inputs]
    if args.input is None:
        rng = np.random.default_rng(args.seed)
        print(f"random inputs, seed {args.seed}")
        return [_random(rng, tensor) for tensor in tensors]
    try:
        with open(args.input, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            with found:
                return {name: found[name] for name in found.files}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        text = str(error).partition("\n")[0]
        if "pickle" in text:  # numpy takes every other file for one, and tells how to load it
            text = "it holds something else than arrays of numbers"
        raise ModelError(f"{args.input} must be a .npy or .npz file: {text}") from error


def _random(rng, tensor):
    import numpy as np

    if tensor.dtype.kind in "iu" and tensor.dtype.itemsize <= 2:
        limits = np.iinfo(tensor.dtype)
        return rng.integers(limits.min, limits.max, tensor.shape, tensor.dtype, endpoint=True)
    if tensor.dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(tensor.dtype)
    return np.zeros(tensor.shape, tensor.dtype)


def write_outputs(output, activations, outputs, values) -> None:
    """Write the first output to ``output``, and all values to ``activations``, if given."""
    import numpy as np

    if output:
        with whole(output) as part, open(part, "wb") as file:
            np.save(file, outputs[0])
    if activations:
        with whole(activations) as part, open(part, "wb") as file:
            np.savez(file, **values)


def show_outputs(program, outputs) -> None:
    """Print the first values of each output."""
    for number, y in zip(program.outputs, outputs, strict=True):
        values = ", ".join(f"{value:g}" for value in y.reshape(-1)[:_SHOWN].tolist())
        more = ", ..." if y.size > _SHOWN else ""
        print(f"{program.tensors[number].name}: {y.dtype} {list(y.shape)}: {values}{more}")


def check_outputs(program, outputs, answers) -> int:
    """Print how outputs differ from the answers of a runtime; return the exit code.

    It is 0 if the outputs are as close to one of the answers as the program promises.
    """
    from weft.models.oracles import compare

    found = {answer.runtime: compare(program, outputs, answer.outputs) for answer in answers}
    runtime = min(found, key=lambda name: _badness(found[name]))
    for difference in found[runtime]:
        print(_difference_line(difference, runtime))
    for name, differences in found.items():
        different = sum(difference.different for difference in differences)
        if name != runtime and different:
            size = sum(difference.size for difference in differences)
            print(f"{different:,} of {size:,} values differ from {name}")
    return 0 if all(difference.is_allowed for difference in found[runtime]) else 1


def _badness(differences):
    """The order of answers: how many outputs are not allowed, then how many values differ."""
    return (
        sum(not difference.is_allowed for difference in differences),
        sum(difference.different for difference in differences),
    )


def _difference_line(difference, runtime):
    if not difference.different:
        return f"{difference.name}: all {difference.size:,} values equal {runtime}"
    verdict = "allowed are" if difference.is_allowed else "FAILED: allowed are"
    return (
        f"{difference.name}: {difference.different:,} of {difference.size:,} values differ from"
        f" {runtime}, by at most {difference.largest:.3g}; {verdict} {difference.allowed:.3g}"
    )
