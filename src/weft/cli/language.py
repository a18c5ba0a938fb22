"""Language models in ``weft run``, ``weft compile`` and ``weft report``."""

import contextlib
import json
import sys
import time

from weft.cli import language_board
from weft.cli.options import integer, number
from weft.cli.progress import slow_task
from weft.files import output_file

__all__ = [
    "add_choice", "add_text", "add_weights", "compile_model", "core_writer", "is_language",
    "refuse_text", "report", "run", "simulated_core", "write_text",
]

# Whose clock the rate of a simulated core has.
_LLAMA_BOARD, _MICROGPT_BOARD = "ulx3s-85f", "icebreaker"
_TOKENS = 200


def add_text(parser) -> None:
    """Add what only language models take to ``weft run``."""
    group = parser.add_argument_group("language models")
    group.add_argument("--prompt", metavar="TEXT", help="the text to continue; default none")
    group.add_argument(
        "--tokens", metavar="INT", type=integer("tokens", 1),
        help=f"tokens that follow the prompt, at most; default {_TOKENS}",
    )
    add_choice(group)
    group.add_argument("--stop", metavar="TEXT", help="end where this text comes")


def add_weights(parser) -> None:
    """Add the type of the weights to which a language model is quantized."""
    parser.add_argument(
        "--weights", choices=["int8", "int4"],
        help="of a language model in float: int8 (default); int4 is less exact, and a core that"
             " reads weights from an SDRAM is almost twice as fast with it",
    )


def add_choice(group) -> None:
    """Add how a language model chooses tokens."""
    group.add_argument(
        "--temperature", metavar="NUMBER", type=number("temperature", 0, 100),
        help="0 takes the most probable token (default); 1 takes tokens by their probabilities,"
             " which --seed decides",
    )
    group.add_argument(
        "--min-p", metavar="NUMBER", type=number("min-p", 0, 1),
        help="with a temperature: leave out tokens with less than this part of the largest"
             " probability; default 0",
    )


_TEXT = "prompt", "tokens", "temperature", "min_p", "stop"
_OF_LANGUAGE = *_TEXT, "weights"
# Options that only networks have, with their defaults.
_NETWORK = {
    "batch": None, "input": None, "mean": None, "std": None,
    "activations": None, "top": None, "labels": None, "repeat": None, "fallback": "allow",
    "layers": False, "html": None, "against": None, "c": None, "prefix": None,
}



def is_language(found) -> bool:
    """Whether a file had a language model, or a program of one."""
    from weft.models.language.model import LanguageModel
    from weft.models.language.program import LanguageProgram

    return isinstance(found, LanguageModel | LanguageProgram)


def refuse_text(args) -> None:
    """Raise ModelError if a network gets an option of language models."""
    from weft.models.errors import ModelError

    for name in _OF_LANGUAGE:
        if getattr(args, name, None) is not None:
            raise ModelError(
                f"--{name.replace('_', '-')} must be for a language model; {args.network} is none"
            )
    if getattr(args, "check", None) == "float":
        raise ModelError(f"--check float must be for a language model; {args.network} is none")


def _refuse_others(args, *taken):
    """Raise ModelError for an option that has no effect on a language model, but ``taken``."""
    from weft.models.errors import ModelError

    for name, option in (("board", "board"), ("config", "config"), ("purpose", "for")):
        if name not in taken and getattr(args, name) is not None:
            raise ModelError(
                f"--{option} must not be given for the language model {args.network} here"
            )
    if "baud" not in taken and getattr(args, "baud", None) is not None:
        raise ModelError("--baud must be with a serial port as --on")
    for name, default in _NETWORK.items():
        if getattr(args, name, default) != default:
            raise ModelError(
                f"--{name} must be for a network of operators; {args.network} is a language model"
            )


def _compiled(args, found):
    """The program of a language model, with the weights of ``--weights``."""
    from weft.models.errors import ModelError
    from weft.models.language.program import LanguageProgram

    if isinstance(found, LanguageProgram):
        if args.weights is not None:
            raise ModelError(
                f"--weights must be with a model in float, and {args.network} is a program, which"
                f" has weights of {found.weights.weight_type}; weft compile makes one"
            )
        return found
    with slow_task(f"quantizing {found.name} with texts of its own"):
        return found.compile(args.weights or "int8")


def run(args, found) -> int:
    """Write text, or compare with float32; return the exit code."""
    from weft.models.errors import ModelError

    on_board = args.on not in ("golden", "sim")
    target = ("board", "config", "purpose") if args.on != "golden" else ()
    _refuse_others(args, *target, *(("baud",) if on_board else ()))
    if args.output is not None:
        raise ModelError(
            f"--output must be for a network of operators; {args.network} is a language model"
        )
    if args.check is not None:
        return _check(args, found)
    if args.min_p and not args.temperature:
        raise ModelError("--min-p must be with a temperature above 0")
    if args.stop == "":
        raise ModelError("--stop must be a text of 1 character or more, not ''")
    program, tokens = _compiled(args, found), args.tokens or _TOKENS
    how = {
        "temperature": args.temperature or 0.0, "min_p": args.min_p or 0.0, "seed": args.seed,
        "stop": args.stop or "",
    }
    if on_board:
        return language_board.run(args, program, write_text, tokens, **how)
    if args.on == "golden":
        return write_text(program, None, args.prompt or "", tokens, **how)
    core = language_board.core_target(args)
    return write_text(
        program, core_writer(program, core and core.config), args.prompt or "", tokens,
        check=lambda session, golden: _check_core(session, golden, core), **how,
    )


def core_writer(program, config=None):
    """The `CoreWriter` of a program for a core, or for the default one of its architecture."""
    from weft.models.language_core.program import default_config
    from weft.models.language_core.writer import CoreWriter

    return CoreWriter(program.weights, config or default_config(program.weights))


def simulated_core(config):
    """A simulated language core, a context manager."""
    from weft.sim.language_core import LanguageSimulation

    with slow_task("building the model of the core (once, maybe minutes)"):
        return LanguageSimulation(config)


def write_text(
    program, writer, prompt, tokens, *, place="a simulated core", connect=None, check=None, **how
) -> int:
    """Print a prompt and the text that follows as it comes, then the rates; return the exit code.

    With a ``writer`` of a core, the core writes the text. The golden model then writes the same
    text, and the cycle model predicts its cycles: 1 if one of them differs. By default the core is
    a simulated one; ``connect(undo)`` connects the writer of another, and ``check(session,
    golden)`` compares.
    """
    session = program.open(writer)
    pieces = session.generate(prompt, tokens, **how)  # a wrong argument is an error here
    with contextlib.ExitStack() as undo:
        if connect is not None:
            connect(undo)
        elif writer is not None:
            writer.connect(undo.enter_context(simulated_core(writer.program.config)))
        _show(prompt)
        start = time.monotonic()
        try:
            for piece in pieces:
                _show(piece)
        finally:
            print(flush=True)
        seconds = time.monotonic() - start
    count = len(session.tokens) - session.prompt_tokens
    end = _ENDS[session.ended].format(session.writer.positions)
    place = "the golden model" if writer is None else place
    print(
        f"on {place}: {_count(count, 'token')} after {session.prompt_tokens} of the prompt, in"
        f" {seconds:.1f} s; ended by {end}",
        file=sys.stderr,
    )
    if writer is None:
        return 0
    golden = program.open()
    golden.writer.positions = writer.positions
    for _ in golden.generate(prompt, tokens, **how):
        pass
    return (check or _check_core)(session, golden)


def _check_core(session, golden, target=None):
    """Compare the text of a core with golden, and its cycles with the prediction.

    The rate is at the clock of ``target``, if it has one, or of the board with the default core.
    """
    from weft.language_core.cycles import as_predicted
    from weft.models.target import board_target
    from weft.sim.sdram import simulated_memory

    writer = session.writer
    cycles, memory = writer.cycles, simulated_memory(writer.program.config)
    right = all(
        as_predicted(count, writer.program.token_cycles(
            writer.how, position, emits=position + 1 >= session.prompt_tokens, memory=memory
        ), memory) for position, count in enumerate(cycles)
    )
    equal = (golden.tokens, golden.ended) == (session.tokens, session.ended)
    last = cycles[-1]
    if target is None:
        target = board_target(_board_of(session.program), "language")
    rate = ""
    if target.clock is not None:
        each = language_board.tokens_per_second(1e6 * target.clock / last)
        rate = f": {each} at {target.clock:g} MHz, the clock of {target.name}"
    print(
        f"{last:,} cycles for the token at position {len(cycles) - 1}{rate}; text"
        f" {'equal to' if equal else 'DIFFERENT from'} the golden model, cycles"
        f" {'as' if right else 'NOT as'} predicted{'' if memory is None else ', to within 1 %'}",
        file=sys.stderr,
    )
    return int(not equal or not right)


_ENDS = {
    "tokens": "--tokens", "stop token": "a token that ends texts", "stop text": "--stop",
    "cache": "a full cache: it has {} positions",
}


def _show(text):
    """Print text of a model at once, without what a terminal would obey."""
    from weft.hints import visible

    print(visible(text, keep="\n\t"), end="", flush=True)


def _check(args, found):
    from weft.models.errors import ModelError
    from weft.models.language.program import LanguageProgram

    if args.check != "float":
        raise ModelError(f"--check must be float for a language model, not {args.check}")
    for name in _TEXT:
        if getattr(args, name) is not None:
            raise ModelError(
                f"--{name.replace('_', '-')} must not be with --check: it writes its own texts"
            )
    if isinstance(found, LanguageProgram):
        raise ModelError(
            f"--check float needs the model in float32, not the program {args.network}"
        )
    result, of_int4 = _agreement(found, found.compile()), None
    if args.weights == "int4":
        of_int4 = _agreement(found, found.compile("int4"))
    for line in _agreement_lines(result):
        print(line if of_int4 is None else f"int8: {line}")
    if of_int4 is not None:
        for line in _agreement_lines(of_int4):
            print(f"int4: {line}")
        print("the limits are those of int8; int4 has none")
    problems = result.problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def _agreement(model, program):
    from weft.models.language.agreement import agreement

    with slow_task(f"comparing {model.name} with float32"):
        return agreement(model, program)


def _agreement_lines(result):
    yield (
        f"perplexity {result.perplexity:.4f}, in float32 {result.float_perplexity:.4f}"
        f" ({result.increase:+.2%}); KL {result.divergence:.5f}"
    )
    yield f"equal greedy tokens {result.greedy:.2%}"


def compile_model(args, found) -> int:
    """Write the program file of a language model; return the exit code."""
    from weft.models.errors import ModelError
    from weft.models.language.program import LanguageProgram

    _refuse_others(args)
    if isinstance(found, LanguageProgram):
        raise ModelError(f"{args.network} must be a language model, not a program of one")
    output = output_file(args.output, args.network)
    program = _compiled(args, found)
    for line in _facts(program):
        print(line)
    program.save(output)
    print(f"{output}: {output.stat().st_size:,} bytes")
    return 0


def report(args, found) -> int:
    """Print what a language model is, and how close its integers are; return the exit code."""
    from weft.models.language.program import LanguageProgram

    _refuse_others(args, "board", "purpose")
    target = language_board.core_target(args)
    program = _compiled(args, found)
    on_core = target and language_board.board_numbers(program, target)
    result = None if isinstance(found, LanguageProgram) else _agreement(found, program)
    if args.json:
        values = {"name": program.name, "source": program.source, **_numbers(program)}
        if result is not None:
            values |= {
                "perplexity": result.perplexity, "float_perplexity": result.float_perplexity,
                "divergence": result.divergence, "greedy": result.greedy,
            }
        json.dump(values | (on_core or {}), sys.stdout, indent=1)
        print()
        return 0
    for line in (*_facts(program), *(language_board.board_facts(on_core) if on_core else ())):
        print(line)
    if result is not None:
        for line in _agreement_lines(result):
            print(line)
    return 0


def _numbers(program):
    """Sizes and work of a program, by their names in JSON."""
    shape = program.weights.shape
    attention = 2 * shape.dim * (shape.dim + shape.kv_dim)
    of_hidden = 3 if shape.is_llama else 2
    products = shape.layers * (attention + of_hidden * shape.dim * shape.hidden)
    return {
        "dim": shape.dim, "layers": shape.layers, "heads": shape.heads,
        "kv_heads": shape.kv_heads, "hidden": shape.hidden, "vocab": shape.vocab,
        "positions": shape.positions, "file_positions": program.file_positions,
        "weights": program.weights.parameters, "weight_type": program.weights.weight_type,
        "macs_per_token": products + shape.vocab * shape.dim,
        "macs_per_position": 2 * shape.layers * shape.dim,
        "cache_bytes_per_position": 2 * shape.layers * shape.kv_dim,
    }


def _count(number, noun):
    return f"{number:,} {noun}{'s' * (number != 1)}"


_TYPES = {"int8": "int8 weights and", "int4": "int4 weights, int8"}


def _facts(program):
    """Lines about a program."""
    n = _numbers(program)
    yield (
        f"{program.name}: a language model of {n['weights']:,} weights ({program.source});"
        f" {_TYPES[program.weights.weight_type]} cache, int16 maps, int32 sums; the sums fit for"
        " all texts"
    )
    limit = ""
    if n["file_positions"] > n["positions"]:
        limit = f" (the file has {n['file_positions']:,}; sums are proved for {n['positions']})"
    counts = [_count(n[key], noun) for key, noun in (
        ("layers", "layer"), ("heads", "head"), ("kv_heads", "head")
    )]
    tokens, positions = _count(n["vocab"], "token"), _count(n["positions"], "position")
    yield (
        f"dim {n['dim']}, {', '.join(counts)} of K and V, hidden {n['hidden']}, {tokens},"
        f" {positions}{limit}"
    )
    yield (
        f"a token: {n['macs_per_token']:,} MAC, and {n['macs_per_position']:,} for each position"
        f" before it; the cache has {n['cache_bytes_per_position']:,} bytes a position"
    )
    yield f"where it runs: {_where(program)}"


def _where(program):
    """The cores of the program's board that compute texts of it; or why there is none."""
    from weft.models.language_core.program import board_cores, refused_by

    board = _board_of(program)
    reasons = {
        purpose: refused_by(program.weights, core)
        for purpose, core in board_cores(program.weights).items()
    }
    good = [purpose for purpose, reason in reasons.items() if not reason]
    if not good:
        # The last core has the largest memory.
        return f"on the golden model alone, no language core takes it: {[*reasons.values()][-1]}"
    core = "a language core" if "language" in good else "a language core with an SDRAM"
    more = ", or --for language-sdram for one with an SDRAM" if len(good) > 1 else ""
    simulated = "" if "language" in good else f" --board {board} --for {good[0]}"
    return (
        f"on {core}, which weft build {board} --for {good[0]} makes{more}; --on sim{simulated}"
        " simulates it, --on golden computes the same"
    )


def _board_of(program):
    """A board whose language core executes the program."""
    return _LLAMA_BOARD if program.weights.shape.is_llama else _MICROGPT_BOARD
