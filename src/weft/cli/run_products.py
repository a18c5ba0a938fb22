"""``weft run`` with the products of a network one by one: the core gets each one over the link."""

from weft.cli.network_values import finish, prepared, repeat, write_outputs
from weft.cli.progress import slow_task
from weft.files import write_text

__all__ = ["run_products"]


def run_products(args, network, program, files, connect) -> int:
    """Run a program step by step; return the exit code.

    Parameters
    ----------
    args : argparse.Namespace
    network : NeuralNetwork or Program
        What the arguments name; ``--check`` needs the network.
    program : Program
    files : (path, path, path)
        Of the output, the activations and the page, or None for each.
    connect : callable
        Returns the transport; called when the inputs are valid. It may be a
        `weft.host.list_transport.ListTransport`, to a network core.
    """
    from weft.models.errors import ModelError

    output, activations, html = files
    samples, inferences, answers = prepared(args, network, program)
    if html and inferences > 1:
        raise ModelError(f"--html needs one inference, not {inferences}")
    transport = connect()
    try:
        session = program.open(transport)
    except BaseException:
        transport.close()
        raise
    with session:
        outputs, records, values = _measured(
            session, samples.x, args.layers, _lists_of(transport)
        )
        print(_cost(program, records, inferences, _lists_of(transport)))
        repeat(args, inferences, lambda: session(samples.x))
    write_outputs(output, activations, outputs, values)
    if html:
        _write_page(program, records, html)
    return finish(args, network, program, samples, outputs, answers, lambda: values)


def _lists_of(transport):
    """Return the counters of lists if the core is one for networks, else None."""
    from weft.host.list_transport import ListTransport

    return transport.products.counters if isinstance(transport, ListTransport) else None


def _measured(session, x, layers, lists):
    """Return the outputs, the records of the steps, and the activations."""
    def watch(record):
        advance()
        if layers:
            print(_layer_line(record, lists), flush=True)

    if layers:
        print(f"{'position':>8}  {'operator':<28} {'products':<24} {'predicted':>10} {'cycles':>10}"
              f" {'bytes in':>10} {'bytes out':>10} {'core ms':>9} {'host ms':>8}")
    program = session.program
    with slow_task(f"running {program.name}", total=len(program.steps)) as advance:
        y, records, values = session(x, stats=True, activations=True, watch=watch)
    return (y if isinstance(y, list) else [y]), records, values


def _layer_line(record, lists):
    """Return the line of a step; the stream of a network core is only emulated."""
    step, stats = record.step, record.stats
    name = "+".join(step.operators)
    shapes = ", ".join(f"{p.m}x{p.k}x{p.n} *{p.count}" for p in step.products) or "host"
    text = f"{min(step.position):>8}  {name:<28} {shapes:<24}"
    if stats is None:
        text += " " * 44
    elif lists is not None:
        text += f" {'':>10} {stats.cycles:>10,} {'':>21}"
    else:
        text += (
            f" {step.estimate.cycles:>10,} {stats.cycles:>10,} {stats.bytes_in:>10,}"
            f" {stats.bytes_out:>10,}"
        )
    host = record.seconds - record.core_seconds
    return f"{text} {1e3 * record.core_seconds:>9.2f} {1e3 * host:>8.2f}"


def _write_page(program, records, path):
    from weft.models.report import report

    write_text(path, report(program).with_measured(records).page())


def _cost(program, records, inferences, lists):
    """Return the line with the cost of all steps."""
    host = sum(record.seconds - record.core_seconds for record in records)
    core = sum(record.core_seconds for record in records)
    seconds = f"{core:.3f} s core and connection, {host:.3f} s host"
    if lists is not None:
        return (
            f"{lists.cycles():,} cycles of {lists.lists:,} lists; {lists.sent:,} bytes to the core,"
            f" {lists.received:,} from it; {seconds}"
        )
    found = [record.stats for record in records if record.stats]
    cycles, starved, sent, received = (
        sum(getattr(stats, name) for stats in found)
        for name in ("cycles", "starved", "bytes_in", "bytes_out")
    )
    predicted = f"predicted {program.estimate.cycles:,}" + (" for one" if inferences > 1 else "")
    return (
        f"{cycles:,} cycles, {starved:,} of them without operands ({predicted}); {sent:,} bytes to"
        f" the core, {received:,} from it; {seconds}"
    )
