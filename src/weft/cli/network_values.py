"""Inputs and outputs of ``weft run``: files, random values, comparison with a runtime."""

from weft.cli.network_explanation import explained
from weft.cli.network_fallback import refuse_fallbacks
from weft.files import whole

__all__ = ["check_outputs", "inputs_of", "prepared", "show_outputs", "write_outputs"]

_SHOWN = 10  # values of an output that are printed


def prepared(args, network, program):
    """Print what runs where; return inputs, number of inferences, and the outputs to expect.

    The last value is None without ``--check``.
    """
    from weft.network.errors import ModelError
    from weft.network.inputs import read_inputs

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
        return x, inferences, None
    from weft.network.oracles import expected

    return x, inferences, expected(args.check, network, program, x)


def inputs_of(args, program):
    """Return the inputs: of a file, or random ones."""
    import zipfile
    import zlib

    import numpy as np

    from weft.network.errors import ModelError

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


def check_outputs(oracle, program, outputs, wanted) -> int:
    """Print how outputs differ from the wanted ones; return 1 if more than allowed, else 0."""
    from weft.network.oracles import ORACLES, compare

    runtime, failed = ORACLES[oracle][0], False
    for found in compare(program, outputs, wanted):
        if found.different:
            rule = f"; allowed are {found.allowed:.3g}" if found.allowed else ""
            print(
                f"{found.name}: {found.different:,} of {found.size:,} values differ from {runtime},"
                f" by at most {found.largest:.3g}{rule}"
            )
        else:
            print(f"{found.name}: all {found.size:,} values equal {runtime}")
        failed |= not found.is_allowed
    return int(failed)
