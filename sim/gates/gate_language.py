"""The test of a gate-level language core: a text, its tokens and cycles against golden."""

from weft.frames import FrameType
from weft.host.language_driver import LanguageDriver
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import steps
from weft.language_core.descriptors import Kind
from weft.models.language.program import LanguageProgram
from weft.models.language_core.board_writer import BoardWriter
from weft.sim.gates.gate_network import GateTransport
from weft.sim.gates.gate_test import GateSim, GateSimError, GateTest

__all__ = ["check_language"]


def check_language(
    gates: GateSim, program: LanguageProgram, config: LanguageCoreConfig, *, tokens: int = 1,
    seed: int, say=lambda text: None,
) -> GateTest:
    """Write a text on ``gates``, and compare its tokens and its cycles with golden.

    The core draws the tokens at temperature 1. If it has no memory for the logits, it takes the
    most probable ones.

    Parameters
    ----------
    gates : GateSim
    program : LanguageProgram
    config : LanguageCoreConfig
        Without a program memory and without a microprogram.
    tokens : int
        Tokens of the text.
    seed : int
        Of the random numbers.
    say : callable
        Called with a line of text after each step that has passed.

    Raises
    ------
    GateSimError
        If the core does not have ``config``, or a token or the number of cycles differs.
    ModelError
        If the core cannot execute the model.
    """
    writer = BoardWriter(program, config, tokens)
    session = program.open(writer)
    how = {"temperature": 1.0, "seed": seed} if writer.program.sampler else {}
    try:
        # The registers tell the end of a text, too.
        driver = LanguageDriver(GateTransport(gates, 0, {FrameType.DONE}), config)
        writer.connect(driver)
        say(f"registers describe the core; the model is loaded, {gates.cycles:,} cycles")
        text = "".join(session.generate("", tokens, **how))
        cycles = writer.finish().cycles
    except (AcceleratorError, TransportError) as error:
        raise GateSimError(str(error)) from error
    golden = program.open()
    golden.writer.positions = writer.positions
    wanted = "".join(golden.generate("", tokens, **how))
    if (session.tokens, text) != (golden.tokens, wanted):
        raise GateSimError(
            f"{program.name}: the tokens {session.tokens} must be {golden.tokens}, as of golden"
        )
    if cycles != writer.predicted():
        raise GateSimError(
            f"{program.name}: {cycles:,} cycles must be {writer.predicted():,}, as predicted"
        )
    count = len(session.tokens) - session.prompt_tokens
    say(
        f"{program.name}: {count} tokens equal golden, in the predicted {cycles:,} cycles;"
        f" {gates.cycles:,} cycles after power-on"
    )
    passes = writer.program.list_of(writer.how)
    macs = config.peak * sum(
        steps(each, position) for each in passes if each.kind == Kind.PRODUCT
        for position in range(count)
    )
    return GateTest(jobs=count * len(passes), macs=macs, results=2 * count)
