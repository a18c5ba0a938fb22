"""The buffer that loads fill: groups of vectors are written alone, words are read whole."""

import random

from verif.amaranth_bench import play
from weft.chip.config import ChipConfig
from weft.config import Config
from weft.hw.chip.loaded_buffer import LoadedBuffer

CHIP = ChipConfig(
    core=Config(rows=2, cols=8, depth=2, lanes=2, requantize="tflite", activation="none"),
    read_vectors=4,
)
VECTORS, WORDS = 8, 6


def test_groups_of_words():
    rng = random.Random(1)
    memory = [[0] * VECTORS for _ in range(WORDS)]
    script, expected = [], []
    for _ in range(200):
        data = [rng.getrandbits(16) for _ in range(VECTORS)]
        enable, word, read = rng.getrandbits(2), rng.randrange(WORDS), rng.randrange(WORDS)
        if read == word:  # undefined
            enable = 0
        script.append({
            "write": {"enable": enable, "word": word, "data": data}, "read_addr": read,
        })
        expected.append(list(memory[read]))
        for n in range(VECTORS):
            if enable >> n // 4 & 1:
                memory[word][n] = data[n]
    dut = LoadedBuffer(CHIP, vectors=VECTORS, words=WORDS)
    [found] = play(dut, script, "read_data", tail=LoadedBuffer.LATENCY)
    assert found[LoadedBuffer.LATENCY :] == expected
