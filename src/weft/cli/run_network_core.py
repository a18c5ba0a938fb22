"""``weft run`` on a network core: the network runs from the memory of the core, if it fits."""

import contextlib
import dataclasses

from weft.cli.network_target import batch_of
from weft.cli.network_values import finish, prepared, repeat, write_outputs
from weft.cli.output_paths import output_file
from weft.cli.progress import slow_task
from weft.cli.run_products import run_products
from weft.files import write_text

__all__ = ["run_network_core"]


def run_network_core(args, network, target, transport=None) -> int:
    """Run a network, or its program, for a target with a NetworkCoreConfig; return the exit code.

    A network that does not fit the core runs product by product.

    ``transport`` is the connection to the core, if it is open; it is closed at the end.
    """
    with contextlib.ExitStack() as undo:
        if transport is not None:
            undo.callback(transport.close)
        return _run(args, network, target, transport)


def _run(args, network, target, transport):
    from weft.models.errors import ModelError, UnfitError
    from weft.models.network_core.program import NetworkCoreProgram
    from weft.models.report import report

    files = args.output, args.activations, args.html
    output, activations, html = (file and output_file(file) for file in files)
    program = network
    if not isinstance(network, NetworkCoreProgram):
        try:
            with slow_task(f"compiling {network.name} for {target.name}"):
                program = network.compile(
                    target, activations=activations is not None, batch=batch_of(args)
                )
        except UnfitError as error:
            if html:
                raise ModelError(f"--html needs a network that fits the core; {error}") from error
            files = output, activations, None
            return _run_streamed(args, network, target, files, transport, error)
    samples, inferences, answers = prepared(args, network, program)
    with program.open(_runner(args, program.config, transport)) as session:
        with slow_task(f"running {program.name} on the core"):
            found = session(
                samples.x, stats=True, activations=activations is not None,
                watch=_watch(program) if args.layers else None,
            )
        cycles = session.cycles
        _show(program, found[1], cycles, inferences)
        repeat(args, inferences, lambda: session(samples.x))
    y, records, values = (*found, {})[:3]
    outputs = y if isinstance(y, list) else [y]
    write_outputs(output, activations, outputs, values)
    if html:
        write_text(html, report(program).with_measured(records).page())
    return finish(
        args, network, program, samples, outputs, answers,
        lambda: values or _activations(args, network, target, samples.x),
    )


def _activations(args, network, target, x):
    """Return the outputs of all operators, from a run that keeps them; None if they do not fit."""
    from weft.models.errors import UnfitError

    try:
        program = network.compile(target, activations=True)
    except UnfitError:
        print("The memory has no space for the outputs of all operators.")
        return None
    with program.open(_runner(args, program.config, None)) as session:
        _, values = session(x, activations=True)
    return values


def _run_streamed(args, network, target, files, transport, error):
    """Run a network that does not fit, by this error: the core gets each product over the link."""
    from weft.host.list_transport import ListTransport, product_config
    from weft.models.compiler import compile_graph

    streamed = dataclasses.replace(target, config=product_config(target.config), by_lists=True)
    program = compile_graph(network.graph, streamed, fuse=args.activations is None)
    if any(step.placement.on_weft for step in program.steps):
        print(f"{error}. The products run on the core one by one, over the link.")
    else:
        print(f"{error}. The core has no product to compute.")
    return run_products(
        args, network, program, files,
        lambda: ListTransport(_runner(args, target.config, transport)),
    )


def _runner(args, config, transport):
    """Return the runner that ``--on`` names; ``transport`` is the connection, if it is open."""
    from weft.cli.progress import progress
    from weft.cli.transports import open_by_name
    from weft.host.network_driver import NetworkDriver
    from weft.host.transport import TransportError

    if args.on == "golden":
        from weft.models.network_core.golden_runner import GoldenRunner

        return GoldenRunner(config)
    if args.on.startswith(("uio:", "mem:")):
        try:
            return NetworkDriver(args.on, config)
        except ValueError as error:
            raise TransportError(str(error)) from error
    with progress() as show:
        if args.on == "sim":
            from weft.sim.network_runner import SimulatedRunner

            return SimulatedRunner(config)
        if transport is None:
            transport = open_by_name(args.on, config, args.baud, show)
    try:
        return NetworkDriver(transport, config)
    except BaseException:
        transport.close()
        raise


def _watch(program):
    """Print the head of the table of layers; return the function that prints a line of it."""
    from weft.models.network_core.program import NetworkCoreRename
    from weft.models.program import Step

    print(f"{'position':>8}  {'operator':<28} {'output':>14} {'jobs':>5} {'predicted':>10}"
          f" {'cycles':>10} {'host ms':>8}")

    def watch(record):
        step = record.step
        text = f"{min(step.position):>8}  {'+'.join(step.operators):<28}"
        if isinstance(step, Step):
            place, sizes = "host", " " * 27
            if step.estimate is not None:
                place = "products"
                sizes = f"{step.estimate.jobs:>5} {step.estimate.cycles:>10,} {_counted(record)}"
            print(f"{text} {place:>14} {sizes} {1e3 * record.seconds:>8.2f}", flush=True)
            return
        size = f"{step.place.height}x{step.place.width}x{step.place.channels}"
        if isinstance(step, NetworkCoreRename):
            print(f"{text} {size:>14}", flush=True)
            return
        print(
            f"{text} {size:>14} {step.jobs:>5} {step.cycles:>10,} {_counted(record)}", flush=True
        )

    return watch


def _counted(record):
    """The cycles of a record, as a column."""
    return f"{'' if record.cycles is None else f'{record.cycles:,}':>10}"


def _show(program, records, cycles, inferences):
    """Print the cycles of all lists, their bytes, and the time of the host."""
    from weft.models.report.link import link_bytes

    sent, received = link_bytes(program)
    host = sum(record.seconds for record in records)
    counted = "cycles are not counted" if cycles is None else f"{cycles:,} cycles"
    each = " for one inference" if inferences > 1 else ""
    print(
        f"{counted} (predicted {program.cycles:,}), {sent:,} bytes to the core, {received:,} from"
        f" it{each}; {host:.3f} s host"
    )
