"""What ``weft run`` does in its own way for each kind of core: connection, table of steps, cost."""

from weft.design import PerKind

__all__ = ["open_core", "refuse_page"]


def open_core(args, program, target, transport):
    """Open a session for a program on a core; return what runs it, with ``session``.

    Parameters
    ----------
    args : argparse.Namespace
    program : CompiledNetwork
        For a product core, it may run on a network core: that computes each product by itself.
    target : NetworkTarget
        The core.
    transport : Transport or None
        The connection to the core, if it is open.
    """
    connection, lists = _CONNECTIONS.of(target)(args, target.config, transport), None
    try:
        if program.kind != target.kind:
            from weft.host.list_transport import ListTransport

            connection = ListTransport(connection)
            lists = connection.products.counters
        return _RUNS.of(program)(program.open(connection), lists)
    except BaseException:
        connection.close()
        raise


def refuse_page(program, inferences: int) -> None:
    """Raise ModelError if a page would have the cycles of several inferences."""
    from weft.models.errors import ModelError

    if inferences > 1 and _RUNS.of(program).ADDS_INFERENCES:
        raise ModelError(f"--html needs one inference, not {inferences}")


def _transport(args, config, transport):
    """Return the transport to a product core; a simulated core has ``config``."""
    from weft.cli.progress import progress
    from weft.cli.transports import open_by_name

    if transport is not None:
        return transport
    with progress() as show:
        return open_by_name(args.on, config, args.baud, show)


def _runner(args, config, transport):
    """Return what executes lists on a network core."""
    from weft.cli.progress import progress
    from weft.cli.transports import open_by_name
    from weft.host.network_driver import NetworkDriver
    from weft.host.transport import TransportError

    if args.on == "golden":
        from weft.models.network_core.session import GoldenRunner

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


class _ProductCoreRun:
    """A run on a product core, or of the products of a network on a network core.

    Parameters
    ----------
    session : Session
    lists : ListCounters or None
        Of a network core; the stream of commands is only emulated then.
    """

    HEAD = (
        f"{'position':>8}  {'operator':<28} {'products':<24} {'predicted':>10} {'cycles':>10}"
        f" {'bytes in':>10} {'bytes out':>10} {'core ms':>9} {'host ms':>8}"
    )
    ADDS_INFERENCES = True  # the cycles of a step are the ones of all inferences

    def __init__(self, session, lists):
        self.session = session
        self.total = len(session.program.steps)
        self._lists = lists

    def line(self, record) -> str:
        """The line of a step."""
        step, stats = record.step, record.stats
        name = "+".join(step.operators)
        shapes = ", ".join(f"{p.m}x{p.k}x{p.n} *{p.count}" for p in step.products) or "host"
        text = f"{min(step.position):>8}  {name:<28} {shapes:<24}"
        if stats is None:
            text += " " * 44
        elif self._lists is not None:
            text += f" {'':>10} {stats.cycles:>10,} {'':>21}"
        else:
            text += (
                f" {step.estimate.cycles:>10,} {stats.cycles:>10,} {stats.bytes_in:>10,}"
                f" {stats.bytes_out:>10,}"
            )
        host = record.seconds - record.core_seconds
        return f"{text} {1e3 * record.core_seconds:>9.2f} {1e3 * host:>8.2f}"

    def cost(self, records, inferences) -> str:
        """The line with the cost of all steps."""
        host = sum(record.seconds - record.core_seconds for record in records)
        core = sum(record.core_seconds for record in records)
        seconds = f"{core:.3f} s core and connection, {host:.3f} s host"
        if self._lists is not None:
            lists = self._lists
            return (
                f"{lists.cycles():,} cycles of {lists.lists:,} lists; {lists.sent:,} bytes to the"
                f" core, {lists.received:,} from it; {seconds}"
            )
        found = [record.stats for record in records if record.stats]
        cycles, starved, sent, received = (
            sum(getattr(stats, name) for stats in found)
            for name in ("cycles", "starved", "bytes_in", "bytes_out")
        )
        each = " for one" if inferences > 1 else ""
        return (
            f"{cycles:,} cycles, {starved:,} of them without operands (predicted"
            f" {self.session.program.estimate.cycles:,}{each}); {sent:,} bytes to the core,"
            f" {received:,} from it; {seconds}"
        )


class _NetworkCoreRun:
    """A run of a whole network on a network core.

    Parameters
    ----------
    session : NetworkCoreSession
    lists : None
    """

    HEAD = (
        f"{'position':>8}  {'operator':<28} {'output':>14} {'jobs':>5} {'predicted':>10}"
        f" {'cycles':>10} {'host ms':>8}"
    )
    ADDS_INFERENCES = False
    total = None  # the layers of a list end together

    def __init__(self, session, lists):
        self.session = session
        self._host, self._renamed = set(session.program.host), set(session.program.renamed)

    def line(self, record) -> str:
        """The line of a step."""
        step = record.step
        text = f"{min(step.position):>8}  {'+'.join(step.operators):<28}"
        if step in self._host:
            place, sizes = "host", " " * 27
            if step.estimate is not None:
                place = "products"
                sizes = f"{step.estimate.jobs:>5} {step.estimate.cycles:>10,} {_counted(record)}"
            return f"{text} {place:>14} {sizes} {1e3 * record.seconds:>8.2f}"
        size = f"{step.place.height}x{step.place.width}x{step.place.channels}"
        if step in self._renamed:
            return f"{text} {size:>14}"
        return f"{text} {size:>14} {step.jobs:>5} {step.cycles:>10,} {_counted(record)}"

    def cost(self, records, inferences) -> str:
        """The line with the cycles of all lists, their bytes, and the time of the host."""
        from weft.models.report.placement import link_bytes

        program, cycles = self.session.program, self.session.cycles
        sent, received = link_bytes(program)
        host = sum(record.seconds for record in records)
        counted = "cycles are not counted" if cycles is None else f"{cycles:,} cycles"
        each = " for one inference" if inferences > 1 else ""
        return (
            f"{counted} (predicted {program.cycles:,}), {sent:,} bytes to the core, {received:,}"
            f" from it{each}; {host:.3f} s host"
        )


def _counted(record):
    """The cycles of a record, as a column."""
    return f"{'' if record.cycles is None else f'{record.cycles:,}':>10}"


_CONNECTIONS = PerKind(product=_transport, network=_runner)
_RUNS = PerKind(product=_ProductCoreRun, network=_NetworkCoreRun)
