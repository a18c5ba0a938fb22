"""Outputs of ``weft run``: files, classes, times, and the comparison with a runtime."""

import time
from pathlib import Path

from weft.cli.network_inputs import samples_of
from weft.cli.progress import slow_task
from weft.files import output_file, written_whole

__all__ = [
    "accuracy_line", "find_files", "finish", "output_files", "prepared", "read_labels",
    "refuse_fallbacks", "refuse_labels", "repeat", "show_top", "write_outputs",
]


def refuse_labels(args) -> None:
    """Raise ModelError for names of classes that nothing prints."""
    from weft.models.errors import ModelError

    if args.labels and not args.top and not (args.input or "").lower().endswith(".csv"):
        raise ModelError("--labels must be with --top, or with a .csv list as --input")


def output_files(args) -> list[Path | None]:
    """Return the files of --output, --activations and --html, checked; None without the option.

    Raises OSError for one that cannot be written, or that the command reads or writes already.
    """
    others, files = [args.network, args.input, args.labels], []
    for name in (args.output, args.activations, args.html):
        files.append(None if name is None else output_file(name, *others))
        others.append(name)
    return files


def find_files(args) -> None:
    """Raise OSError for a missing file, before the network is compiled."""
    for name in (args.input, args.labels):
        if name is not None:
            Path(name).stat()


def read_labels(path, classes: int) -> list[str]:
    """Return the names of the classes: a line for each. Raises ModelError for another number."""
    from weft.hints import visible
    from weft.models.errors import ModelError

    try:
        names = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: labels must be lines of UTF-8: {error}") from error
    names = [visible(name.strip()) for name in names]
    while names and not names[-1]:
        names.pop()
    if len(names) != classes:
        raise ModelError(
            f"{path}: labels must be {classes} lines, one for each class, not {len(names)}"
        )
    return names


def show_top(rows, count: int, labels: list[str] | None, names: list[str]) -> None:
    """Print the ``count`` largest values of each row [inferences, classes], with their labels.

    ``names`` are those of the inputs; empty if they have none.
    """
    import numpy as np

    for n, row in enumerate(rows):
        places = np.argsort(-row.astype(np.float64), kind="stable")[:count]
        found = ", ".join(
            f"{place}{f' {labels[place]}' if labels else ''} ({row[place]:.4g})" for place in places
        )
        name = f"{names[n]}: " if names else f"inference {n}: " if len(rows) > 1 else ""
        print(f"{name}top {len(places)}: {found}")


def accuracy_line(rows, wanted: list[str], count: int, labels: list[str] | None) -> str:
    """Return the share of rows whose largest value has the wanted class: a number or a label.

    With ``count`` above 1 also the share with the class among the ``count`` largest values. Raises
    ModelError for a class that does not exist.
    """
    import numpy as np

    from weft.models.errors import ModelError

    known = {label: place for place, label in enumerate(labels or [])}
    classes = rows.shape[1]
    places = []
    for label in wanted:
        place = known.get(label, int(label) if label.isdecimal() else -1)
        if not 0 <= place < classes:
            rule = f"a number in 0..{classes - 1}" + (" or a line of --labels" if labels else "")
            raise ModelError(f"class must be {rule}, not {label!r:.60}")
        places.append(place)
    order = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")
    hits = order == np.array(places)[:, None]
    text = f"accuracy: {_share(hits[:, :1])}"
    return f"{text}; in the top {count}: {_share(hits[:, :count])}" if count > 1 else text


def _share(hits):
    right = int(hits.any(axis=1).sum())
    return f"{right / len(hits):.2%} ({right} of {len(hits)})"


def prepared(args, network, program):
    """Print what runs where; return the samples, number of inferences, and answers of a runtime.

    There are no answers without ``--check``.
    """
    from weft.models.errors import ModelError
    from weft.models.program_session import read_inputs
    from weft.models.report.placement import explanation

    for line in explanation(program):
        print(line)
    if args.fallback == "refuse":
        refuse_fallbacks(program)
    samples = samples_of(args, network, program)
    try:
        _, inferences, _ = read_inputs(program, samples.x)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{program.name}: {error}") from error
    if args.labels or samples.labels or args.top:
        classes_of(program)  # before any work
    if not args.check:
        return samples, inferences, []
    from weft.models.oracles import answers

    with slow_task(f"running {program.name} in its runtime, for --check {args.check}"):
        return samples, inferences, answers(args.check, network, program, samples.x)


def refuse_fallbacks(program) -> None:
    """Raise ModelError for the first operator that another runtime or the host must compute.

    This is ``--fallback refuse``.
    """
    from weft.models.errors import ModelError
    from weft.models.work import HostWork, host_products

    for step in program.host:
        runtime = isinstance(step.work, HostWork) and step.work.kernel.endswith(".model")
        if runtime or host_products(step.work) and not step.placement.on_weft:
            field = f"; {step.placement.field} would change this" if step.placement.field else ""
            raise ModelError(
                f"{program.name}: operator {step.position[0]} ({step.operators[0]} {step.name})"
                f" must not run on the host with --fallback refuse: {step.placement.reason}{field}"
            )


def classes_of(program) -> int:
    """Return the number of classes: the last axis of the first output; ModelError without one."""
    from weft.models.errors import ModelError

    tensor = program.tensors[program.outputs[0]]
    if not tensor.shape or max(tensor.shape) != tensor.shape[-1] or sorted(tensor.shape)[:-1] != (
        [1] * (len(tensor.shape) - 1)
    ):
        raise ModelError(
            f"--top, --labels and a list of labels need an output of one row of classes;"
            f" {tensor.name} is {tensor.shape}"
        )
    return tensor.shape[-1]


def repeat(args, inferences: int, run) -> None:
    """Call ``run`` as often as ``--repeat`` says, and print median and p95 of an inference."""
    if args.repeat is None:
        return
    import numpy as np

    from weft.models.report.placement import time_text

    times = []
    with slow_task(f"running {args.repeat:,} times", args.repeat) as advance:
        for _ in range(args.repeat):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3 / inferences)
            advance()
    median, late = np.percentile(times, [50, 95])
    what = {"golden": " of the golden model, not of a core"}.get(args.on, "")
    if args.on in ("sim", "board"):
        what = " of the simulation, not of a core"
    print(
        f"{args.repeat:,} runs: median {time_text(median)}, p95 {time_text(late)} an"
        f" inference{what}, host included"
    )


def write_outputs(output, activations, outputs, values) -> None:
    """Write the first output to ``output``, and all values to ``activations``, if given."""
    import numpy as np

    if output:
        with written_whole(output) as part, open(part, "wb") as file:
            np.save(file, outputs[0])
    if activations:
        with written_whole(activations) as part, open(part, "wb") as file:
            np.savez(file, **values)


_SHOWN = 10  # values of an output that are printed


def show_outputs(program, outputs) -> None:
    """Print the first values of each output."""
    for number, y in zip(program.outputs, outputs, strict=True):
        values = ", ".join(f"{value:g}" for value in y.reshape(-1)[:_SHOWN].tolist())
        more = ", ..." if y.size > _SHOWN else ""
        print(f"{program.tensors[number].name}: {y.dtype} {list(y.shape)}: {values}{more}")


def finish(args, network, program, samples, outputs, answers, activations) -> int:
    """Print outputs, classes and the comparison with a runtime; return the exit code.

    ``activations`` returns the outputs of operators, by name, for a comparison that fails.
    """
    show_outputs(program, outputs)
    if args.top or samples.labels:
        _show_classes(args, program, samples, outputs[0])
    if not answers:
        return 0
    status = check_outputs(program, outputs, answers)
    if status:
        from weft.models.exactness import RUNTIMES
        from weft.models.oracles import ORACLES

        if (runtime := RUNTIMES[program.mode]) != ORACLES[args.check][0]:
            print(f"The Config rounds as {runtime} (mode {program.mode}), as the first line says.")
        from weft.models.oracles import first_difference

        found = activations()
        if found is not None:
            with slow_task("comparing the operators"):
                difference = first_difference(args.check, network, program, samples.x, found)
            print(difference)
    return status


def _show_classes(args, program, samples, y):
    from weft.models.program_session import dequantized

    tensor = program.tensors[program.outputs[0]]
    classes = classes_of(program)
    labels = read_labels(args.labels, classes) if args.labels else None
    rows = y.reshape(-1, classes)
    rows = rows if rows.dtype.kind == "f" else dequantized(rows, tensor)
    if args.top:
        show_top(rows, min(args.top, classes), labels, samples.names)
    if samples.labels:
        print(accuracy_line(rows, samples.labels, min(args.top or 1, classes), labels))


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
            print(f"the closer answer counts: {different:,} of {size:,} values differ from {name}")
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
    counts = f"{difference.different:,} of {difference.size:,} values differ"
    largest, allowed = f"by at most {difference.largest:.3g}", f"{difference.allowed:.3g}"
    if difference.is_allowed:
        return (
            f"{difference.name}: passed, within the allowed {allowed} of {runtime}; {counts},"
            f" {largest}"
        )
    return (
        f"{difference.name}: {counts} from {runtime}, {largest}; FAILED: allowed are {allowed}"
    )
