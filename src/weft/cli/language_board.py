"""Language models on a board: ``weft run --on``, and ``weft report --board``."""

import sys

from weft.cli.options import open_by_name
from weft.cli.progress import progress, slow_task

__all__ = ["board_facts", "board_numbers", "core_target", "run"]

_TIMEOUT = 60.0  # seconds without an answer, also of a simulated board
_PLACES = {"board": "the simulated board"}


def core_target(args):
    """The `weft.models.target.NetworkTarget` of ``--board``, ``--for`` and ``--config``, with a
    language core.

    None if they are not given. Raises ModelError for another core.
    """
    from weft.cli.network_inputs import target_named
    from weft.design import LANGUAGE
    from weft.models.errors import ModelError

    target = target_named(args)
    if target is not None and target.kind != LANGUAGE:
        raise ModelError(
            f"{target.name} has a {target.kind}, and {args.network} is a language model: it runs on"
            f" a {LANGUAGE}; --board ulx3s-85f --for language, for a microGPT --board icebreaker"
            " --for language"
        )
    return target


def run(args, program, write_text, tokens: int, **how) -> int:
    """Write text on a board; return the exit code.

    ``write_text`` is the one of `weft.cli.language`, which has no import of this module then.
    """
    from weft.host.language_driver import LanguageDriver
    from weft.models.language_core.board_writer import BoardWriter
    from weft.models.language_core.program import default_config

    target = core_target(args)
    config = target and target.config
    if args.on == "board":
        config = config or default_config(program.weights)
    if config is not None:  # a wrong argument is an error before a board is opened
        writer = BoardWriter(program, config, tokens)
        program.open(writer).generate(args.prompt or "", tokens, **how)
    with progress() as show:
        transport = open_by_name(args.on, config, args.baud, show)
    try:
        driver = LanguageDriver(transport, config, timeout=_TIMEOUT)
    except BaseException:
        transport.close()
        raise
    with driver:
        writer = BoardWriter(program, driver.config, tokens)
        return write_text(
            program, writer, args.prompt or "", tokens,
            place=_PLACES.get(args.on, args.on),
            connect=lambda _: _connect(writer, driver),
            check=lambda session, golden: _check(session, golden, target), **how,
        )


def _connect(writer, driver):
    """Write the model, and say how much of it was there."""
    with slow_task("writing the model to the core") as task:
        writer.connect(driver, task.watch)
    print(
        f"the model: {driver.sent:,} bytes sent, {driver.found:,} bytes were there",
        file=sys.stderr, flush=True,
    )


def _check(session, golden, target):
    """Print the cycles of the text, and whether it is right; return the exit code."""
    writer = session.writer
    state = writer.finish()
    predicted = writer.predicted()
    equal = (golden.tokens, golden.ended) == (session.tokens, session.ended)
    text = f"text {'equal to' if equal else 'DIFFERENT from'} the golden model"
    if predicted is None:
        print(f"the core wrote more than was wanted, and was told to stop; {text}", file=sys.stderr)
        return int(not equal)
    right = state.cycles == predicted
    rate = ""
    if target is not None and target.clock is not None:
        each = len(session.tokens) * 1e6 * target.clock / state.cycles
        rate = f" ({each:,.0f} tokens/s at {target.clock:g} MHz, the prompt included)"
    print(
        f"{state.cycles:,} cycles for {state.position} positions{rate}; {text}, cycles"
        f" {'as' if right else 'NOT as'} predicted",
        file=sys.stderr,
    )
    return int(not equal or not right)


def board_numbers(program, target) -> dict:
    """What a program needs on the language core of a target, by the names in JSON.

    Raises ModelError if the core cannot execute the model.
    """
    from weft.golden.language.sampling import GREEDY
    from weft.language_core.config import TEXT_TOKENS
    from weft.models.language_core.board_writer import text_cycles
    from weft.models.language_core.program import largest_program

    found = largest_program(program.weights, target.config)
    positions = min(found.positions, TEXT_TOKENS)
    cycles = {n: found.token_cycles(GREEDY, n - 1) for n in (1, positions // 2, positions)}
    text = text_cycles(found, GREEDY, 0, 1, positions)
    return {
        "target": target.name, "core": target.config.name, "clock_mhz": target.clock,
        "baud": target.baud, "core_positions": positions,
        "words": target.config.words, "words_used": sum(found.words.values()),
        "words_by_use": found.words,
        "token_cycles": cycles, "text_cycles": text,
        "tokens_per_second": positions * 1e6 * target.clock / text,
    }


def board_facts(values: dict):
    """Lines about `board_numbers`."""
    uses = ", ".join(f"{name} {size:,}" for name, size in values["words_by_use"].items())
    yield (
        f"on {values['target']} ({values['core']}, {values['clock_mhz']:g} MHz): fits with"
        f" {values['core_positions']} positions in {values['words_used']:,} of"
        f" {values['words']:,} words ({uses})"
    )
    cycles = ", ".join(
        f"{count:,} with {n} position{'s' * (n > 1)}" for n, count in values["token_cycles"].items()
    )
    yield (
        f"cycles of a token: {cycles}; a text of {values['core_positions']} positions"
        f" {values['text_cycles']:,} cycles: {values['tokens_per_second']:,.0f} tokens/s"
    )
