"""`Report`: reports of both kinds of core answer the same questions."""

import json
from dataclasses import replace

import pytest

from weft.models.report import NetworkCoreReport, ProductCoreReport, Report, report


@pytest.fixture(params=["program", "network_core_program"])
def found(request, other_program):
    program = replace(request.getfixturevalue(request.param), notes=("a note",))
    return report(program, other_program)


def test_the_kind_of_core_decides(program, network_core_program):
    assert type(report(program)) is ProductCoreReport
    assert type(report(network_core_program)) is NetworkCoreReport


def test_facts(found):
    data = json.loads(json.dumps(found.to_json()))
    assert isinstance(found, Report) and data["name"] == found.name
    assert data["placement"] == found.placement == str(found).splitlines()[0]
    assert found.config_hash in (data.get("config_hash"), data.get("network_core_hash"))
    assert {"Config", "MAC/cycle", "operators on Weft", "cycles", "core ms", "wire ms"} <= set(
        found.totals()
    )
    assert [row[0] for row in found.comparison()] == [
        name for name in found.totals() if name in found.against.totals()
    ]


def test_each_reason_and_note_is_in_text_and_page(found):
    assert found.reasons()
    page = found.page()
    for line in (*found.reasons(), *found.notes):
        assert line in found.text().splitlines() and line in page


def test_each_picture_has_a_heading(found):
    assert set(found.pictures()) - {"against"} <= set(found.page_parts().titles)


def test_without_a_second_target_there_is_no_comparison(program, network_core_program):
    assert report(program).comparison() == report(network_core_program).comparison() == []
