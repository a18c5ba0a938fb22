"""The report as text."""

import re
from dataclasses import replace

from network_programs import TARGET, make_program

from weft.models.program import MatrixProduct
from weft.models.report import report
from weft.models.report.product_core_views import products_text
from weft.models.target import NetworkTarget


def cells(text):
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_text(program):
    found = report(program)
    lines = cells(str(found))
    assert lines[0] == [found.placement]
    assert lines[2] == [
        "operator", "on", "MAC", "M x K x N", "jobs", "cycles", "used", "bound by", "bytes in",
        "bytes out", "core ms", "wire ms",
    ]
    conv, depthwise, pool = lines[4:7]
    assert conv == [
        "CONV_2D", "Weft", "2,880", "20 x 18 x 8", "1", "285", "15.8%", "wire (load)", "848", "160",
        "0.003", "9.0",
    ]
    assert depthwise[:4] == ["DEPTHWISE_CONV_2D", "both", "1,440", "2 x (20 x 36 x 4)"]
    assert pool == ["AVERAGE_POOL_2D", "host"]
    partly = (
        "partly on the host: DEPTHWISE_CONV_2D: no table for GELU; activation=table in the Config"
        " changes this (saves 160 bytes of results)"
    )
    assert [partly] in lines
    assert [(  # its kernel here is one that moves values
        "on the host: SOFTMAX: softmax needs a reduction; a network core computes it, if its"
        " maps are of 8 bits"
    )] in lines
    assert lines[-1] == ["the batch is 1"]


def test_a_narrow_terminal_leaves_out_columns(program):
    lines = report(program).text(80).splitlines()
    assert cells("\n".join(lines))[2] == [
        "operator", "on", "M x K x N", "cycles", "used", "bound by"
    ]
    for width in range(40, 140, 10):
        table = report(program).text(width).splitlines()[1:9]
        assert max(map(len, table)) <= width and "…" not in "".join(table)


def test_a_column_without_a_value_is_left_out(program):
    text = str(report(replace(program, steps=program.steps[2:3])))  # on the host
    assert cells(text)[2] == ["operator", "on", "cycles"][:2]


def test_names_are_printed_as_they_are(program):
    """Brackets and colons are no marks of the console."""
    first = replace(program.steps[0], operators=("CUSTOM[/red]:fire:",))
    text = str(report(replace(program, name="[b]net:fire:", steps=(first, *program.steps[1:]))))
    assert text.startswith("[b]net:fire:: ")
    assert cells(text)[4][0] == "CUSTOM[/red]:fire:"


def test_without_a_clock_there_are_no_times():
    lines = cells(str(report(make_program(NetworkTarget("mine", TARGET.config)))))
    assert lines[2][-1] == "bytes out"
    assert ["core: 1,078 cycles, 6.4% of 64 MAC/cycle"] in lines
    assert not any(line[0].startswith("wire") for line in lines)


def test_a_core_without_work_and_without_a_clock():
    whole = make_program(NetworkTarget("mine", TARGET.config))
    text = str(report(replace(whole, steps=whole.steps[2:3])))
    assert "core: 0 cycles, 0.0% of 64 MAC/cycle\n" in text and "wire:" not in text


def test_measured_cycles_have_a_column(program, measured):
    lines = cells(str(report(program).with_measured(measured)))
    assert lines[2][5:7] == ["cycles", "measured"]
    assert lines[4][5:7] == ["285", "300"]


def test_compares_two_targets(program, other_program):
    lines = cells(str(report(program, other_program)))
    assert ["a-board", "other"] in lines
    assert ["Config", "4x4x4", "2x4x8"] in lines
    assert ["core ms", "0.011", "-"] in lines


def test_products():
    assert products_text(()) == ""
    assert products_text((MatrixProduct(1, 2, 3),)) == "1 x 2 x 3"
    assert products_text((MatrixProduct(1, 2, 3, 4), MatrixProduct(1, 2, 1))) == (
        "4 x (1 x 2 x 3) + 1 more"
    )
