"""The rules of TFLite Micro and of LiteRT where they differ: hand-computed values next to ties."""

import pytest

from weft.models.kernels.recurrent import LiteRules, MicroRules

SCALES = {
    "input_scales": ((1 << 30, 1),) * 4, "recurrent_scales": ((1 << 30, 1),) * 4,
    "forget_scale": (1 << 30, -14), "update_scale": (1 << 30, -18), "hidden_scale": (1 << 30, -22),
}
ATTRIBUTES = {"tflite": SCALES, "single": SCALES, "cell_power": -11, "limit": 3.5, "wide": False}
RULES = MicroRules(ATTRIBUTES), LiteRules(ATTRIBUTES)


@pytest.mark.parametrize("forget, cell, enter, new, expected", [
    # (2**14 - 1) / 2**15 is below a half; rounded to halves first, it is a half.
    (1, (1 << 14) - 1, 0, 0, (1, 0)), (1, 1 << 14, 0, 0, (1, 1)),
    # 511 * 513 = 2**18 - 1, and (2**18 - 1) / 2**19 is below a half.
    (0, 0, 511, 513, (1, 0)), (0, 0, 512, 512, (1, 1)),
    (32767, 32767, 32767, 32767, (32767, 32767)),
])
def test_cell(forget, cell, enter, new, expected):
    assert tuple(int(rules.cell(forget, cell, enter, new)) for rules in RULES) == expected


def test_only_tflite_micro_saturates_the_second_product():
    assert [int(rules.gate(0, -20000, 40000)) for rules in RULES] == [12767, 20000]


def test_limit():
    """It is cut to whole steps: for TensorFlow Lite Micro also to 0, which keeps the cell at 0."""
    assert [rules.limit for rules in RULES] == [3, 3]
    for limit, limits in ((1e30, [32767, 32767]), (0.5, [0, None]), (0, [None, None])):
        attributes = {**ATTRIBUTES, "limit": limit}
        assert [kind(attributes).limit for kind in (MicroRules, LiteRules)] == limits
