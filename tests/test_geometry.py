"""The layout of operands, against ``docs/interfaces.md`` written as loops."""

import itertools

import pytest

from weft.commands import Region
from weft.config import Config
from weft.geometry import Operand, memories, operands

EDGES = (1, 2, 3, 5, 8, 12, 16, 31, 64)
DEPTHS = (1, 2, 3, 4, 7, 16, 64)
STREAMS = (1, 2, 4, 8, 16, 32, 64)
OPERANDS = [
    Operand(edge, depth, 64, stream)
    for edge, depth, stream in itertools.product(EDGES, DEPTHS, STREAMS)
]


def test_a_word_has_the_values_of_one_cycle():
    for g in OPERANDS:
        assert g.word_bytes == len([(e, d) for e in range(g.edge) for d in range(g.depth)])


def test_a_page_is_16_words():
    assert [Operand(3, 2, words, 16).pages for words in (32, 64, 4096, 65536)] == [2, 4, 256, 4096]


def test_a_long_word_occupies_several_stream_words():
    for g in OPERANDS:
        assert g.segments == len(range(0, g.word_bytes, g.stream))


def test_short_words_share_a_stream_word():
    for g in OPERANDS:
        fitting = [n for n in (1, 2, 4, 8, 16) if n * g.word_bytes <= g.stream]
        assert g.group == max(fitting, default=1)


def test_words_are_never_both_split_and_shared():
    for g in OPERANDS:
        assert 1 in (g.segments, g.group)


@pytest.mark.parametrize("edge, depth, stream, segments, group", [
    (8, 1, 16, 1, 2),
    (4, 4, 16, 1, 1),
    (3, 2, 16, 1, 2),    # 12 of 16 bytes
    (5, 3, 64, 1, 4),    # 60 of 64 bytes
    (1, 1, 64, 1, 16),   # not 64: a page at most
    (12, 2, 16, 2, 1),   # 24 of 32 bytes
    (64, 64, 1, 4096, 1),
])  # fmt: skip
def test_by_hand(edge, depth, stream, segments, group):
    g = Operand(edge, depth, 64, stream)
    assert (g.segments, g.group) == (segments, group)


def test_panels_cover_all_rows():
    for g in OPERANDS[:: len(STREAMS)]:
        for size in range(1, 3 * g.edge + 2):
            assert g.panels(size) == len(range(0, size, g.edge))


def test_a_panel_has_all_of_k():
    for g in OPERANDS[:: len(STREAMS)]:
        for k in (*range(1, 3 * g.depth + 2), 640, 1024):
            words = len(range(0, k, g.depth))
            assert g.panel_words(k) == words
            assert g.panel_pages(k) == len(range(0, words, 16))


def test_a_panel_starts_on_a_stream_word():
    for g in OPERANDS:
        for k in (1, g.depth, 5 * g.depth + 1, 33 * g.depth):
            taken = room = 0
            for _ in range(g.panel_words(k)):
                if g.word_bytes > g.stream:
                    taken += len(range(0, g.word_bytes, g.stream))
                else:
                    taken, room = (taken, room - 1) if room else (taken + 1, g.group - 1)
            assert g.panel_stream_words(k) == taken


def test_operands_follow_from_the_config():
    config = Config(rows=3, cols=5, depth=2, a_words=64, b_words=128, bytes_in=4)
    assert operands(config) == (Operand(3, 2, 64, 4), Operand(5, 2, 128, 4))


def test_bf16_values_have_two_bytes():
    config = Config(rows=3, cols=5, dtype="bf16", a_words=64, b_words=128, bytes_in=4)
    a, b = operands(config)
    assert (a, b) == (Operand(3, 1, 64, 4, size=2), Operand(5, 1, 128, 4, size=2))
    assert [(g.word_bytes, g.segments, g.group) for g in (a, b)] == [(6, 2, 1), (10, 3, 1)]
    assert [g.panel_stream_words(7) for g in (a, b)] == [14, 21]


@pytest.mark.parametrize("cols, stream, segments", [
    (1, 16, 1), (4, 16, 1), (5, 16, 2), (4, 4, 4), (64, 64, 4), (1, 64, 1), (3, 2, 6),
])
def test_a_word_of_c_is_a_row_of_a_tile(cols, stream, segments):
    config = Config(cols=cols, dtype="bf16", c_words=64, bytes_in=stream)
    g = memories(config)[Region.C]
    # C is addressed by words, so words do not share a stream word.
    assert (g.word_bytes, g.words, g.pages, g.page, g.group) == (4 * cols, 64, 64, 1, 1)
    assert (g.edge, g.depth, g.size, g.segments) == (cols, 1, 4, segments)
    assert (g.panel_words(9), g.panel_pages(9), g.panel_stream_words(9)) == (9, 9, 9 * segments)


@pytest.mark.parametrize("cols, lanes, words, page", [(8, 4, 2, 2), (5, 2, 3, 4), (3, 8, 1, 1)])
def test_limits_have_the_layout_of_parameters(cols, lanes, words, page):
    config = Config(cols=cols, lanes=lanes, dtype="bf16", b_words=128)
    g = memories(config)[Region.PARAMETERS]
    assert g == Operand(lanes, 8, 8 * page, 16, page)  # B has 8 pages
    assert (g.word_bytes, g.panels(cols)) == (8 * lanes, words)


# cols, lanes, bytes_in; words of a panel of parameters, its page, stream words of a word, words of
# a stream word. An entry has 16 bytes.
PARAMETERS = [
    (8, 4, 16, 2, 2, 4, 1),
    (8, 1, 16, 8, 8, 1, 1),
    (8, 16, 16, 1, 1, 16, 1),    # more lanes than columns
    (5, 2, 4, 3, 4, 8, 1),       # pages of a power of two
    (9, 4, 16, 3, 4, 4, 1),
    (1, 1, 64, 1, 1, 1, 1),      # a panel starts on a stream word: nothing shares it
    (8, 1, 64, 8, 8, 1, 4),
    (2, 1, 64, 2, 2, 1, 2),
    (33, 2, 64, 17, 32, 1, 2),   # 17 words of 32 bytes: 9 stream words
    (64, 1, 64, 64, 64, 1, 4),
    (64, 64, 1, 1, 1, 1024, 1),
]  # fmt: skip


@pytest.mark.parametrize("cols, lanes, stream, words, page, segments, group", PARAMETERS)
def test_parameters_by_hand(cols, lanes, stream, words, page, segments, group):
    config = Config(cols=cols, lanes=lanes, bytes_in=stream, bytes_out=64, b_words=128)
    g = memories(config)[2]
    assert g == Operand(lanes, 16, 8 * page, stream, page)  # B has 8 pages
    assert (g.word_bytes, g.pages, g.segments, g.group) == (16 * lanes, 8, segments, group)
    assert g.panels(cols) == words
    assert g.panel_stream_words(16 * words) == -(-words // group) * segments


def test_a_panel_of_parameters_fits_in_a_page():
    """One page for each page of B, with the layout of an operand on the stream."""
    powers = (1, 2, 4, 8, 16, 32, 64)
    for cols, lanes, stream in itertools.product(range(1, 65), powers, powers):
        config = Config(cols=cols, lanes=lanes, bytes_in=stream, bytes_out=64)
        b, g = (memories(config)[region] for region in (Region.B, Region.PARAMETERS))
        chunks = len(range(0, cols, lanes))
        assert g.pages == b.pages
        assert g.page in powers and g.page // 2 < chunks <= g.page
        # A group limited by the page still holds the panel.
        fitting = max((n for n in (1, 2, 4, 8, 16) if 16 * lanes * n <= stream), default=1)
        lines = len(range(0, chunks, fitting)) * len(range(0, 16 * lanes, stream))
        assert g.panel_stream_words(16 * chunks) == lines


@pytest.mark.parametrize("stream, group", [(1, 1), (2, 2), (8, 8), (16, 16), (64, 16)])
def test_the_table_is_one_panel_of_256_bytes(stream, group):
    g = memories(Config(bytes_in=stream))[3]
    assert g == Operand(1, 1, 256, stream, 256)
    assert (g.pages, g.segments, g.group) == (1, 1, group)
    assert (g.panel_words(256), g.panel_pages(256)) == (256, 1)
    assert g.panel_stream_words(256) == 256 // group


@pytest.mark.parametrize("fields, regions", [
    ({"requantize": "none", "activation": "none"}, "A B"),
    ({"requantize": "none", "activation": "table"}, "A B"),
    ({"requantize": "tflite", "activation": "none"}, "A B PARAMETERS"),
    ({"requantize": "onnx", "activation": "table"}, "A B PARAMETERS TABLE"),
    ({"dtype": "bf16"}, "A B PARAMETERS C"),
    ({"dtype": "bf16", "activation": "none"}, "A B C"),
    ({"dtype": "bf16", "c_words": 0}, "A B PARAMETERS"),
    ({"dtype": "bf16", "c_words": 0, "activation": "none"}, "A B"),
])
def test_memories_follow_from_the_config(fields, regions):
    config = Config(rows=3, cols=5, **fields)
    assert [region.name for region in memories(config)] == regions.split()
    assert (memories(config)[Region.A], memories(config)[Region.B]) == operands(config)
