"""Fixtures: the file of a program."""

import pytest


@pytest.fixture(scope="module")
def contents(program, tmp_path_factory):
    """The bytes of the file of the module's ``program``."""
    path = tmp_path_factory.mktemp("program") / "net.weft"
    program.save(path)
    return path.read_bytes()
