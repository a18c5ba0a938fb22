"""How a list ended, in words."""

import pytest

from weft.network_core.descriptors import ListError, ListReport


def test_a_list_without_an_error_has_no_problem():
    assert ListReport(ListError.NONE, 3).problem() == ""
    assert ListReport(ListError.NONE, 3).problem("in the last layer") == ""


@pytest.mark.parametrize("error", [error for error in ListError if error != ListError.NONE])
def test_each_error_has_a_reason(error):
    text = ListReport(error, 3).problem()
    assert text.startswith(f"the list ended with error {error.name} in job 3: ")
    assert not text.endswith(": ")


def test_the_place_can_be_told_in_words():
    assert ListReport(ListError.ABORTED, 3).problem("in layer 2") == (
        "the list ended with error ABORTED in layer 2: the list was aborted"
    )
