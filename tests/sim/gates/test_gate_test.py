"""The scenarios of the gate test, run on the golden core."""

import pytest
from golden_stream import GoldenStream

from weft.config import Config
from weft.sim.gates.gate_test import scenarios
from weft.sim.scenario import result_words

CONFIGS = [
    Config(rows=1, cols=2, depth=2, a_words=512, b_words=512),  # a panel takes two pages
    Config(rows=3, cols=2, depth=4, a_words=256, b_words=256),
    Config(rows=2, cols=3, depth=1, a_words=32, b_words=32),
    Config(rows=2, cols=2, requantize="onnx"),
    Config(rows=2, cols=2, requantize="none", activation="none"),
    Config(rows=2, cols=2, dtype="bf16"),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_golden_passes(config):
    jobs = 0
    for name, program, macs in scenarios(config, seed=1):
        core = GoldenStream(config)
        core.send_words(program.data)
        for scoreboard in program.scoreboards:
            packet = core.receive(1)
            words = result_words(
                packet.data, config.bytes_out, tag=packet.tag, status=packet.status,
                last=packet.last,
            )
            scoreboard.check(words)
            jobs += 1
        assert macs > 0, name
    assert jobs == 5
