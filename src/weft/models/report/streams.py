"""Bytes that a step moves: operand words, results, and frames on the serial port."""

from weft.commands import HEADER_BYTES, Job, JobFlag, Load, Region, epilogue_flags, result
from weft.config import Config
from weft.cycles.output import ResultKind
from weft.frames import MAX_PAYLOAD
from weft.geometry import memories
from weft.host.packing import result_bytes
from weft.models.program import Program, Step
from weft.models.report.figures import Ceilings, LayerStreams
from weft.models.work import RecurrentWork
from weft.timing import Latencies

__all__ = ["FRAME_BYTES", "RESULT_FRAME_BYTES", "ceilings", "step_streams", "streams", "transfers"]

FRAME_BYTES = 12  # SYNC, type, number, length and CRC of a frame; an acknowledgement has only these
RESULT_FRAME_BYTES = FRAME_BYTES + 4  # and tag, last and status of a RESULTS frame


def ceilings(config: Config) -> Ceilings:
    """The peak rates of the parts of a core."""
    latencies = Latencies.of(config)
    words = {region: m for region, m in memories(config).items() if region <= Region.B}
    a_bytes, b_bytes = (operand.words * operand.word_bytes for operand in words.values())
    row = latencies.row_chunks * _chunk_cycles(config, _narrow(config))
    return Ceilings(config.peak, config.bytes_in, config.cols / row, a_bytes, b_bytes)


def transfers(program: Program, step: Step) -> list[tuple[list[Job | Load], int]]:
    """The streams of a step on the core, and how often each is sent in an inference.

    A stream has the headers in their order, with the loads that follow for a later step.
    """
    work = step.work
    if isinstance(work, RecurrentWork):
        return [(part.commands(), work.steps) for part in work.products]
    early = [] if work.early < 0 else program.steps[work.early].work.weight_loads()
    return [([*work.commands(), *(load for load, _ in early)], 1)]


def step_streams(program: Program, step: Step) -> LayerStreams:
    """Bytes that a step on the core moves in one inference."""
    found = [streams(program.target.array, c) * times for c, times in transfers(program, step)]
    return sum(found, LayerStreams())


def streams(config: Config, commands) -> LayerStreams:
    """Bytes that ``commands`` move in one inference, if each is sent once.

    Frames hold up to 256 bytes of the step's commands, one after another; the board acknowledges
    each. The results of a job start a new frame. Repeated frames and requests do not count.
    """
    geometry = memories(config)
    sizes = dict.fromkeys(geometry, 0)
    stream_words = results = frames = drain = 0
    for command in commands:
        stream_words += max(1, HEADER_BYTES // config.bytes_in)
        if isinstance(command, Job):
            if JobFlag.KEEP in command.flags:
                continue
            size = result_bytes(command.m, command.n, config, result(config, command.flags).bytes)
            results += size
            frames += -(-size // MAX_PAYLOAD)
            drain += _drain_cycles(config, command)
        else:
            operand = geometry[command.operand]
            groups = -(-command.words // operand.group)
            stream_words += groups * operand.segments * command.panels
            sizes[command.operand] += command.words * command.panels * operand.word_bytes
    sent = stream_words * config.bytes_in
    sent_frames = -(-sent // MAX_PAYLOAD)
    a, b = sizes.pop(Region.A), sizes.pop(Region.B)
    return LayerStreams(
        sent, results, a, b, sum(sizes.values()), sent + FRAME_BYTES * sent_frames,
        results + RESULT_FRAME_BYTES * frames + FRAME_BYTES * sent_frames, drain,
    )


def _narrow(config):
    """The job flag of narrow results; none if the Config has no epilogue."""
    return (*epilogue_flags(config), JobFlag(0))[0]


def _chunk_cycles(config, flags):
    """Cycles from a chunk of results to the next one."""
    kind = ResultKind.of(Latencies.of(config), flags)
    return max(kind.words, config.scale_cycles if kind.epilogue else 1)


def _drain_cycles(config, job):
    full, rest = divmod(job.n, config.cols)
    chunks = full * -(-config.cols // config.lanes) + -(-rest // config.lanes)
    return job.m * chunks * _chunk_cycles(config, job.flags)
