"""The predicted cycles of the list of an inference, from the cycle model of lists."""

from collections.abc import Callable
from dataclasses import replace

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ListPrediction, ProgramTiming, predict_list
from weft.network_core.cycles.memory import BURST, PERIOD
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ON_CHIP,
    ListLoad,
    ListLoop,
    split,
    unpack_list,
)

__all__ = [
    "TURNS", "predict_run", "program_conditions", "stream_note",
    "streamed_bytes",
]

TURNS = 3  # of a batch, that are followed


def predict_run(
    config: NetworkCoreConfig, run: bytes, first: int, log: int,
    timing: ProgramTiming | None = None, watch: Callable[[], object] | None = None,
    on_chip: bool = False,
) -> ListPrediction:
    """Predict the cycles of the list at the start of ``run``.

    Of a batch of more than 3 inferences the model follows 3, and the others take the mean time of
    the second and the third one. It is exact for smaller batches.

    Parameters
    ----------
    config : NetworkCoreConfig
    run : bytes
        The descriptors, and what follows them.
    first, log : int
        First vectors of ``run`` and of the log.
    timing : ProgramTiming, optional
        Of the program memory; by default its default values.
    watch : callable, optional
        Called after each job that the model follows: those of `TURNS` inferences at most.
    on_chip : bool
        List and log lie in the memory on the chip, of a core with a program memory.
    """
    descriptors, more = unpack_list(run), 0
    for number, loop in enumerate(descriptors):
        if isinstance(loop, ListLoop) and loop.times > TURNS:
            more = loop.times - TURNS
            descriptors[number] = replace(loop, times=TURNS)
    place, log_address = (split(number, config.banks) for number in (first, log))
    if on_chip and config.program_words:
        place |= ON_CHIP
    prediction = predict_list(config, descriptors, place, log_address, timing=timing, watch=watch)
    if not more:
        return prediction
    jobs = len(prediction.jobs) // TURNS
    turns = prediction.jobs[-1][1] - prediction.jobs[jobs - 1][1]  # all but the first
    return replace(prediction, cycles=prediction.cycles + more * turns // (TURNS - 1))


def streamed_bytes(run: bytes, config: NetworkCoreConfig, *, on_chip: bool) -> int:
    """Return the bytes that a list reads from the program memory: whole beats, of all turns.

    Parameters
    ----------
    run : bytes
        The descriptors, and what follows them.
    config : NetworkCoreConfig
        With a program memory.
    on_chip : bool
        The list lies in the memory on the chip. Otherwise both heads read its descriptors.
    """
    beats, body = 0, []
    own = 0 if on_chip else 2 * -(-DESCRIPTOR_BYTES // config.beat_bytes)
    for entry in unpack_list(run):
        each = own
        if isinstance(entry, ListLoad) and not entry.on_chip:
            each += -(-entry.vectors(config) // config.read_vectors)
        body.append(each)
        if isinstance(entry, ListLoop):
            beats += (entry.times - 1) * sum(body[-1 - entry.body :])
        beats += each
    return beats * config.beat_bytes


def stream_note(count: int, batch: int) -> str:
    """Return what a user should know about ``count`` bytes that stream for ``batch`` inferences."""
    what = "an inference reads" if batch == 1 else f"a list of {batch} inferences reads"
    return f"{what} {count:,} bytes of lists and weights from the program memory"


def program_conditions(config: NetworkCoreConfig, timing: ProgramTiming | None = None) -> str:
    """Return the conditions of predicted cycles on the program memory, which the core must have.

    ``timing`` is as of `predict_run`.
    """
    timing = timing or ProgramTiming()
    pace = "a cycle" if timing.period == PERIOD else f"each {timing.period / PERIOD:.2f} cycles"
    memory = f"a program memory that answers after {timing.latency} cycles with a beat {pace}"
    if timing.rows:
        memory = (
            f"an SDRAM that answers after {timing.latency} cycles in an open row with a beat each"
            f" {timing.rows.words} cycles, and has its first refresh {timing.rows.refresh:,} cycles"
            " after START"
        )
    return f"{memory}, and a PROGRAM_BASE that is a multiple of {BURST * config.beat_bytes} bytes"
