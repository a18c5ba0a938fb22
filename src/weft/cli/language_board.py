"""Language models on a board: ``weft run --on``, and ``weft report --board``."""

import sys

from weft.cli.options import open_by_name
from weft.cli.progress import progress, slow_task

__all__ = ["board_facts", "board_numbers", "core_target", "run", "tokens_per_second"]

_TIMEOUT = 60.0  # seconds without an answer, also of a simulated board
_PLACES = {"board": "the simulated board"}


def tokens_per_second(rate: float) -> str:
    """A rate in words; a slow one with a digit after the point."""
    return f"{rate:,.{1 if rate < 100 else 0}f} tokens/s"


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
        writer = BoardWriter(program, driver.config, tokens, _memory(args, target, driver.config))
        return write_text(
            program, writer, args.prompt or "", tokens,
            place=_PLACES.get(args.on, args.on),
            connect=lambda _: _connect(writer, driver),
            check=lambda session, golden: _check(session, golden, target), **how,
        )


def _memory(args, target, config):
    """The timing of the program memory of a core, for predictions; None if it is not known."""
    from weft.sim.sdram import simulated_memory

    if args.on == "board":
        return simulated_memory(config)
    return target and target.memory


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
    from weft.language_core.cycles import as_predicted

    writer = session.writer
    state = writer.finish()
    known = writer.memory is not None or not writer.program.program
    predicted = writer.predicted() if known else None
    equal = (golden.tokens, golden.ended) == (session.tokens, session.ended)
    text = f"text {'equal to' if equal else 'DIFFERENT from'} the golden model"
    if not known:
        print(
            f"{state.cycles:,} cycles for {state.position} positions; {text}; with --board and"
            " --for, the cycles are predicted, too", file=sys.stderr,
        )
        return int(not equal)
    if predicted is None:
        print(f"the core wrote more than was wanted, and was told to stop; {text}", file=sys.stderr)
        return int(not equal)
    right = as_predicted(state.cycles, predicted, writer.memory)
    rate = ""
    if target is not None and target.clock is not None:
        each = len(session.tokens) * 1e6 * target.clock / state.cycles
        rate = f" ({tokens_per_second(each)} at {target.clock:g} MHz, the prompt included)"
    print(
        f"{state.cycles:,} cycles for {state.position} positions{rate}; {text}, cycles"
        f" {'as' if right else 'NOT as'} predicted"
        f"{'' if writer.memory is None else ', to within 1 %'}",
        file=sys.stderr,
    )
    return int(not equal or not right)


def board_numbers(program, target) -> dict:
    """What a program needs on the language core of a target, by the names in JSON.

    Raises ModelError if the core cannot execute the model.
    """
    from weft.golden.language.sampling import GREEDY
    from weft.language_core.config import BEAT_BYTES, TEXT_TOKENS
    from weft.language_core.cycles import token_bytes
    from weft.models.language_core.board_writer import text_cycles
    from weft.models.language_core.program import largest_program
    from weft.network_core.cycles.memory import PERIOD

    found = largest_program(program.weights, target.config)
    positions = min(found.positions, TEXT_TOKENS)
    memory, counts = target.memory, (1, positions // 2, positions)
    cycles = {n: found.token_cycles(GREEDY, n - 1, memory=memory) for n in counts}
    text = text_cycles(found, GREEDY, 0, 1, positions, memory)
    program_memory = {} if memory is None else {
        "program_words": target.config.program_words,
        "program_words_used": sum(found.program_words.values()),
        "program_words_by_use": found.program_words,
        "token_bytes": {n: token_bytes(found.passes, n - 1) for n in counts},
        "program_bytes_per_second":
            PERIOD * BEAT_BYTES * 1e6 * target.clock / memory.period,
    }
    return {
        "target": target.name, "core": target.config.name, "clock_mhz": target.clock,
        "placed": target.placed,
        "baud": target.baud, "core_positions": positions,
        "words": target.config.words, "words_used": sum(found.words.values()),
        "words_by_use": found.words,
        **program_memory, "token_cycles": cycles, "text_cycles": text,
        "tokens_per_second": positions * 1e6 * target.clock / text,
    }


def board_facts(values: dict):
    """Lines about `board_numbers`."""
    def uses(prefix):
        return ", ".join(
            f"{name} {size:,}" for name, size in values[f"{prefix}words_by_use"].items()
        )

    goal = "" if values["placed"] else ", which nextpnr has not reached yet"
    yield (
        f"on {values['target']} ({values['core']}, {values['clock_mhz']:g} MHz{goal}): fits with"
        f" {values['core_positions']} positions in {values['words_used']:,} of"
        f" {values['words']:,} words ({uses('')})"
    )
    if "program_words" in values:
        rate, moved = values["program_bytes_per_second"], values["token_bytes"].items()
        yield (
            f"program memory: {values['program_words_used']:,} of {values['program_words']:,} words"
            f" ({uses('program_')})"
        )
        bytes_ = ", ".join(f"{count:,} with {_positions(n)}" for n, count in moved)
        slow, fast = rate / max(values["token_bytes"].values()), rate / values["token_bytes"][1]
        yield (
            f"bytes of a token from it and to it: {bytes_}; at {rate / 1e6:.1f} MB/s they bound the"
            f" rate to {slow:,.1f} to {fast:,.1f} tokens/s"
        )
    cycles = ", ".join(
        f"{count:,} with {_positions(n)}" for n, count in values["token_cycles"].items()
    )
    yield (
        f"cycles of a token: {cycles}; a text of {values['core_positions']} positions"
        f" {values['text_cycles']:,} cycles: {tokens_per_second(values['tokens_per_second'])}"
    )


def _positions(count):
    return f"{count} position{'s' * (count > 1)}"
