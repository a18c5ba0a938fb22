"""`LayerRun`: its shape, from the input and the output."""

import numpy as np

from weft.demo import LayerRun


def test_shape():
    run = LayerRun("layer 1", np.zeros((5, 3), np.int8), None, np.zeros((5, 7), np.int8))
    assert (run.m, run.k, run.n) == (5, 3, 7)
    assert run.sums is None
