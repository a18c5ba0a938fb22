"""The words of matrices, tables and parameters."""

import numpy as np
import pytest

from weft.golden.int4 import unpack
from weft.models.language_core.image import Image, matrix_words, packed_words, table_groups


@pytest.mark.parametrize("across", [False, True])
def test_matrix_words(across):
    weights = np.random.default_rng(1).integers(-128, 128, (20, 11)).astype(np.int8)
    words = matrix_words(weights, across=across).view(np.int8)
    assert words.shape == (4, 128)
    for k in range(32):
        for n in range(16):
            number = k // 16 * 2 + n // 8 if across else n // 8 * 2 + k // 16
            expected = weights[k, n] if k < 20 and n < 11 else 0
            assert words[number, n % 8 * 16 + k % 16] == expected


@pytest.mark.parametrize("outputs, inputs, beats", [
    (11, 20, 16),  # two tiles; 1 beat of scales and 8 of codes, padded to words of 8 beats
    (8, 96, 32),  # 6 words: 4 share a beat of scales, and 2
])
def test_packed_words(outputs, inputs, beats):
    """Each weight is its code, at its place, times its scale: read nibble by nibble."""
    rng = np.random.default_rng(1)
    groups = -(-inputs // 16)
    scales = rng.integers(1, 16, (outputs, groups)).astype(np.uint8)
    weights = unpack(rng.integers(-8, 8, (outputs, inputs)).astype(np.int8), scales)
    words = packed_words(weights, scales)
    tiles = -(-outputs // 8)
    assert words.shape == (tiles * beats // 8, 128)
    nibbles = np.stack([words & 15, words >> 4], -1).reshape(tiles, beats, 32)
    for n in range(outputs):
        tile, column = divmod(n, 8)
        for k in range(inputs):
            word, place = divmod(k, 16)
            first = word // 4 * 17  # the beat of the scales
            scale = nibbles[tile, first, word % 4 * 8 + column]
            codes = nibbles[tile, first + 1 + word % 4 * 4 + column // 2]
            code = int(codes[column % 2 * 16 + place])
            assert (code - 16 * (code > 7)) * int(scale) == weights[n, k]


def test_groups_start_at_words():
    image = Image()
    assert image.take("list", 2) == 0
    assert image.put_groups("a", [1, -1, 3]) == 2 * 16
    assert image.put_groups("b", np.arange(65)) == 3 * 16
    assert image.put_groups("a", table_groups([40000], [-2])) == 5 * 16
    assert (image.used, image.sizes) == (6, {"list": 2, "a": 2, "b": 2})
    values = np.frombuffer(image.bytes(), "<u2").reshape(-1, 64)
    assert values[2, :4].tolist() == [1, 65535, 3, 0]
    assert values[3].tolist() == [*range(64)] and values[4, :2].tolist() == [64, 0]
    assert values[5, :3].tolist() == [40000, 65534, 0]
