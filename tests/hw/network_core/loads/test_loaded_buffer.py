"""The buffer that loads fill: groups of vectors are written alone, words are read whole."""

import random

import pytest
from amaranth.back import rtlil
from network_cores import small_network_core

from verif.amaranth_bench import play
from weft.hw.network_core.loads.loader import LoadedBuffer
from weft.hw.primitives import Primitives

CHIP = small_network_core(2, 8, 2, lanes=2, read_vectors=4)
VECTORS = 8


@pytest.mark.parametrize("words", [6, 64, 67])
def test_groups_of_words(words):
    """The last three of 67 words have a bank of their own."""
    rng = random.Random(1)
    memory = [[0] * VECTORS for _ in range(words)]
    places = [0, 1, words // 2, *range(max(0, words - 5), words)]
    script, expected, before = [], [], None
    for _ in range(200):
        data = [rng.getrandbits(16) for _ in range(VECTORS)]
        enable, word = rng.getrandbits(2), rng.choice(places)
        # A read of a word that is being written is undefined.
        read = rng.choice([place for place in places if place not in (word, before)])
        before = word
        script.append({
            "write": {"enable": enable, "word": word, "data": data}, "read.address": read,
        })
        expected.append(list(memory[read]))
        for n in range(VECTORS):
            if enable >> n // 4 & 1:
                memory[word][n] = data[n]
    dut = LoadedBuffer(CHIP, vectors=VECTORS, words=words)
    [found] = play(dut, script, "read.data", tail=LoadedBuffer.LATENCY)
    assert found[LoadedBuffer.LATENCY :] == expected


@pytest.mark.parametrize("words, blocks, distributed", [(512, 4, 0), (528, 4, 1), (600, 8, 0)])
def test_a_few_words_more_keep_the_width_of_the_blocks(words, blocks, distributed):
    """A group has 128 bits: 4 blocks of 36 bits with 512 words, 8 of 18 bits with 1,024."""
    config = small_network_core(2, 8, 4, lanes=2, read_vectors=4, target="ecp5")
    text = rtlil.convert(LoadedBuffer(config, vectors=4, words=words), platform=Primitives())
    assert text.count("cell \\DP16KD ") == blocks
    assert text.count('attribute \\ram_style "distributed"') == distributed
