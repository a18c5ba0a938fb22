"""The table of areas: all of its components can be synthesized, and the page lists them all."""

import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from tooling import load

from weft.boards.design_digest import design_digest
from weft.boards.toolchain import to_rtlil
from weft.hw.array.systolic import ProcessingElement


@pytest.fixture(scope="module")
def area():
    return load("area")


@pytest.fixture(scope="module")
def components(area):
    """All names and components of the page; some of their parts are never elaborated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        elements = [(name, ProcessingElement(mac=mac(depth=1))) for name, mac, *_ in area.ELEMENTS]
        components = [*elements, *area.components()]
        yield components
        components.clear()
        elements.clear()
        gc.collect()


def test_components_have_netlists(components):
    for _, component in components:
        assert "module" in to_rtlil(component)


def test_each_component_has_a_design(area, components):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        found = dict(area.designs())
        assert [*found] == [name for name, _ in components]
        name, *_ = found
        digests = found[name]()
        found.clear()
        gc.collect()
    assert digests["design"] == design_digest(to_rtlil(area.element(area.ELEMENTS[0][1])))


def test_the_record_has_all_components(area, components):
    names = [row[0] for table in area.results.load("area")["tables"] for row in table["rows"]]
    assert names == [name for name, _ in components]
