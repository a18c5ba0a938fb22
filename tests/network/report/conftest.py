"""Programs made by hand, for all tests of reports."""

import pytest
from network_programs import OTHER, make_program


@pytest.fixture(scope="session")
def program():
    return make_program()


@pytest.fixture(scope="session")
def other_program():
    return make_program(OTHER)
