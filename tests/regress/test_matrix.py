"""The cases of a regression, and their names."""

import pytest
from rejects import rejects

from weft.config import Config
from weft.regress.case import CaseError, case_of, drawn, matrix

DESIGNS = [("7.0", drawn(7, 0)), ("7.1", drawn(7, 1))]


def test_has_each_config_with_each_check_and_seed():
    cases = [str(case) for case in matrix(DESIGNS, ("lint", "products", "icarus"), 2)]
    assert cases == [
        "7.0/lint", "7.0/products/1", "7.0/products/2", "7.0/icarus/1", "7.0/icarus/2",
        "7.1/lint", "7.1/products/1", "7.1/products/2", "7.1/icarus/1", "7.1/icarus/2",
    ]


def test_only_benches_have_tests():
    checks = ("lint", "products", "icarus", "verilator")
    tests = {case.check: case.tests for case in matrix(DESIGNS, checks, 1, ("flow",))}
    assert tests == {"lint": (), "products": (), "icarus": ("flow",), "verilator": ("flow",)}


def test_draws_are_repeatable_and_differ():
    assert drawn(7, 0) == drawn(7, 0)
    assert len({drawn(draw, number) for draw in (7, 8) for number in range(3)}) == 6


def test_a_name_gives_its_case():
    for case in matrix(DESIGNS, ("lint", "products", "verilator"), 2, ("flow",)):
        assert case_of(str(case), None, ("flow",)) == case
    given = Config(rows=3)
    [lint, bench] = matrix([("design", given)], ("lint", "icarus"), 1)
    assert case_of("design/lint", given) == lint
    assert case_of("design/icarus/1", given) == bench


@pytest.mark.parametrize("text", ["1.3", "1.3/icarus", "1.3/lint/1", "1/icarus/1", "1.3/xcelium/1"])
def test_rejects_another_name(text):
    with rejects(
        CaseError, "only must be a case as 1.3/icarus/2, 1.3/lint or design/products/1, with a"
        f" check of lint, products, icarus, verilator, not {text!r}"
    ):
        case_of(text, Config())


def test_rejects_a_design_without_its_config():
    with rejects(
        CaseError, "the case design/lint needs --config FILE, the design that it is of"
    ):
        case_of("design/lint", None)
