"""A search: candidates of either kind of core, and estimates of designs that are known."""

import pytest
from explore_points import DEVICE, network_core, network_records, records

from weft.config import Config
from weft.explore import search
from weft.explore.estimate import Estimator
from weft.explore.model import FittedModel
from weft.explore.search import candidates_of, estimates_of
from weft.explore.workload import MatrixWorkload, workload_of


@pytest.mark.parametrize("base, name", [
    (Config(target="ecp5"), "candidates"), (network_core(), "network_candidates"),
])
def test_the_kind_of_core_chooses_the_candidates(monkeypatch, base, name):
    given = []
    monkeypatch.setattr(search, name, lambda *args, **options: given.append((args, options)))
    candidates_of("estimator", base, "area", rate=3.0, known=["known"], advance=print)
    assert given == [
        (("estimator", base, "area"), {"rate": 3.0, "known": ["known"], "advance": print})
    ]


def test_each_design_is_estimated_once():
    estimator = Estimator(DEVICE, [MatrixWorkload(8, 8, 8)], FittedModel(records()), clock=100.0)
    one, two = (Config(target="ecp5", rows=rows, cols=2) for rows in (2, 3))
    count = []
    found = estimates_of(estimator, [one, two, one], lambda: count.append(1))
    assert [each.config for each in found] == [one, two]
    assert len(count) == 2


def test_a_core_that_does_not_hold_the_networks_has_no_estimate():
    digits = workload_of("examples/digits_cnn.tflite")
    estimator = Estimator(DEVICE, [digits], FittedModel(network_records()), clock=100.0)
    found = estimates_of(estimator, [network_core(words=16), network_core(words=2048)])
    assert [each.config.words for each in found] == [2048]
