"""Compiles the network of a command; if it does not fit the core, says what would run it."""

from weft.cli.network_target import batch_of
from weft.cli.progress import slow_task

__all__ = ["compiled", "compiled_slowly"]

_OTHER_KIND = (
    "a product core (no --for, no table [network_core]), which gets each product over the link,"
    " as this core does with 'weft run'"
)


def compiled(args, network, target):
    """Compile a network for a target of `weft.models.target.target_of`.

    Raises UnfitError with the numbers, and with other cores that run the network, if it does not
    fit a network core.
    """
    from weft.models.errors import UnfitError
    from weft.models.target import target_of

    found = target_of(target)
    try:
        return compiled_slowly(network, found, batch=batch_of(args))
    except UnfitError as error:
        ways = [_OTHER_KIND, *_larger(args, network, found)]
        raise UnfitError(f"{error}. What runs it: {'; '.join(ways)}") from error


def compiled_slowly(network, target, **options):
    """Compile a network for a NetworkTarget, with the options of its ``compile``.

    It is shown on the standard error if it takes over 3 seconds, with the remaining time.
    """
    with slow_task(f"compiling {network.name} for {target.name}") as task:
        return network.compile(target, watch=task.watch, **options)


def _larger(args, network, target):
    """Yield the smallest core of a board with more memory that the network fits."""
    from weft.models.errors import ModelError
    from weft.models.target import board_cores

    for core in board_cores():
        if core.config.memory_bytes <= target.config.memory_bytes:
            continue
        try:
            program = compiled_slowly(network, core, batch=batch_of(args))
        except ModelError:
            continue
        yield (
            f"the core {core.name}: the network needs {program.memory_used:,} bytes of its"
            f" {core.config.memory_bytes:,}"
        )
        return
