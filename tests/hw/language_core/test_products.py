"""Sums of products of tiles, and the cycle in which each group leaves."""

import numpy as np

from verif.amaranth_bench import play
from weft.hw.language_core.products import ProductColumns
from weft.language_core.config import COLUMNS, DEPTH
from weft.language_core.latencies import GROUP_OF_PRODUCT, READ


def test_tiles():
    rng, script, expected = np.random.default_rng(1), [], {}
    for words in (1, 1, 3, 2, 1, 5, 1):
        x = rng.integers(-32768, 32768, (words, DEPTH))
        w = rng.integers(-128, 128, (words, COLUMNS, DEPTH))
        script.append({"valid": 0})  # the last steps of two tiles are two cycles apart
        if words == 5:  # the largest magnitudes
            x[:], w[:] = -32768, -128
        for n in range(words):
            script.append({
                "valid": 1, "first": n == 0, "last": n == words - 1, "vector": x[n].tolist(),
                "word": int.from_bytes(w[n].astype(np.int8).tobytes(), "little"),
            })
            if rng.random() < 0.3:  # a bubble, with data that must not count
                script.append(script[-1] | {"valid": 0})
        step = max(n for n, cycle in enumerate(script) if cycle["valid"])
        sums = np.einsum("kd,kcd->c", x, w).tolist()
        after = GROUP_OF_PRODUCT - READ
        expected |= {step + after: sums[:4], step + after + 1: sums[4:]}
    groups = play(
        ProductColumns(target="generic"), [*script, {"valid": 0}], "group_valid", "group",
        tail=GROUP_OF_PRODUCT,
    )
    assert {n: group for n, (valid, group) in enumerate(zip(*groups, strict=True)) if valid} == (
        expected
    )
