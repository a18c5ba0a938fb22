"""The scenarios of the gate test, run on the golden core."""

import pytest

from weft.config import Config
from weft.host.golden import GoldenTransport
from weft.sim.gates.gate_test import scenarios

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
        core = GoldenTransport(config)
        core.send(b"".join(word.to_bytes(config.bytes_in, "little") for word in program.words))
        for answer in program.expected_results:
            words, last = [], False
            while not last:
                packet = core.receive(1)
                last = packet.last
                starts = range(0, len(packet.data), config.bytes_out)
                words += [
                    {
                        "data": int.from_bytes(packet.data[n : n + config.bytes_out], "little"),
                        "tag": packet.tag, "status": int(packet.status),
                        "last": last and n == starts[-1],
                    }
                    for n in starts
                ]
            answer.check(words)
            jobs += 1
        assert macs > 0, name
    assert jobs == 5
