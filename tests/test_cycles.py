"""The cycle model against the hardware's counters, and against values computed by hand."""

import numpy as np
import pytest
from command_sequences import draw
from covering import CASES
from rejects import rejects

from weft.commands import Job, JobFlag, Load, LoadFlag
from weft.config import Config
from weft.cycles import predict
from weft.geometry import memories
from weft.registers import COUNTERS, REGISTERS

QUICK = "1x1x1", "1x2x1_bf16_ftz"  # in a run without slow tests
SEED = 20261
SMALL = {"a_words": 512, "b_words": 512}
# Sizes and rates at the ends of their ranges, beside the covering Configs.
CONFIGS = [
    Config(rows=1, cols=16, depth=8, lanes=16, a_words=512, b_words=1024),
    Config(
        rows=7, cols=2, depth=3, lanes=2, bytes_in=1, bytes_out=2, hop=4, a_words=64, b_words=64,
        jobs=2,
    ),
    Config(rows=16, cols=1, depth=2, bytes_in=8, bytes_out=32, jobs=8, **SMALL),
    Config(),
    Config(
        dtype="bf16", rows=2, cols=3, lanes=8, bytes_out=2, c_words=64, flush_subnormals=True,
        jobs=2, **SMALL
    ),
]


def stream(config, commands):
    """The bytes of commands; operands are zero, because cycles do not depend on them."""
    parts = []
    for command in commands:
        parts.append(command.pack().ljust(config.bytes_in, b"\0"))
        if isinstance(command, Load):
            g = memories(config)[command.operand]
            words = -(-command.words // g.group) * g.segments * command.panels
            parts.append(bytes(words * config.bytes_in))
    return b"".join(parts)


def counters(transport):
    start = len(REGISTERS) - len(COUNTERS)
    words = transport.read(start, len(COUNTERS), 600)
    return dict(zip(COUNTERS, words, strict=True))


def measure(transport, config, commands):
    """Increments of the counters while the hardware runs ``commands``."""
    before = counters(transport)
    transport.send_words(stream(config, commands))
    while True:
        packet = transport.receive(600)
        if packet.last and packet.tag == commands[-1].tag:
            break
    after = counters(transport)
    return {name: after[name] - before[name] for name in COUNTERS}


# Of the quick covering Configs, most models are compiled in slow tests only; of the others, in long
# ones.
@pytest.mark.parametrize("config", [
    case if case.id in QUICK else pytest.param(
        *case.values, id=case.id, marks=pytest.mark.long if case.marks else pytest.mark.slow
    )
    for case in CASES
] + [
    pytest.param(config, id=config.name, marks=pytest.mark.slow if n < 1 else pytest.mark.long)
    for n, config in enumerate(CONFIGS)
])
@pytest.mark.parametrize("sequences", [8, pytest.param(20, marks=pytest.mark.long)])
def test_equals_the_hardware(config, sequences, transports):
    """Random sequences of one to six jobs."""
    random = np.random.default_rng(SEED)
    transport = transports(config)
    print(f"seed {SEED}")
    for _ in range(sequences):
        # Two more jobs: one that leaves no sums, and one that is rejected at once.
        rest = Job(1, 1, 1, 0, 1, 1, 0, 1, 1, tag=98), Job(0, 0, 0, 0, 0, 0, 0, 0, 0, tag=99)
        commands = [*draw(config, random), *rest]
        found = measure(transport, config, commands)
        model = predict(config, commands)
        predicted = {
            "busy": model.cycles, "active": model.active, "starved": model.starved,
            "stalled": model.stalled, "words_in": model.words_in, "words_out": model.words_out,
        }
        assert {name: found[name] for name in predicted} == predicted, "\n".join(map(str, commands))


def test_one_tile_by_hand():
    # 2 header words, decoder, table, tile gate: the first of 8 steps is in cycle 4. After the last
    # step: 2 to the array, 2 in the MAC, 3 rows of blocks down, 1 into the chain, 3 columns of
    # blocks, 1 into the buffer, 1 out of it; then 16 words.
    job = Job(8, 8, 8, 0, 1, 1, 0, 1, 1)
    assert predict(Config(), [job]).cycles == 4 + 8 + (2 + 2 + 3 + 1 + 3 + 1 + 1) - 1 + 16


def test_tiles_back_to_back_take_the_tile_time():
    config = Config(rows=4, cols=4, depth=4)
    for k in range(1, 65):
        jobs = [Job(4, 4, k, 0, 1, 1, 0, 1, 1)] * 30
        ends = predict(config, jobs).ends
        # The header of a job takes 3 cycles, which is less than any tile time.
        assert ends[-1] - ends[-11] == 10 * max(-(-k // 4), 4)


def test_rejects_a_job_without_feeds():
    load = Load(1, 0, 1, 1, 8, LoadFlag.FEED)
    fed = JobFlag.FEED_A | JobFlag.FEED_B
    job = Job(8, 8, 8, 0, 1, 1, 0, 1, 1, tag=7, flags=fed)
    with rejects(ValueError, "panel 0 of A must be fed to the job with tag 7, and is not"):
        predict(Config(), [job, load])
