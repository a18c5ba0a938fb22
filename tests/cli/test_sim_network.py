"""The table of layers that ``weft sim`` prints."""

import io
import re

import pytest
from rejects import rejects
from rich.console import Console

from weft.cli.sim_network import LayerRow, layer_table

ROW = {
    "name": "layer 1", "m": 450, "k": 64, "n": 32, "cycles": 14760, "predicted": 14760,
    "utilization": 0.9871, "match": True,
}  # fmt: skip


def row(**changes):
    return LayerRow(**ROW | changes)


def printed(rows, **options):
    """The text of the table, and the problems that the function returns."""
    console = Console(file=io.StringIO(), width=100)
    problems = layer_table(
        rows, images=450, accuracy=0.97333, float_accuracy=0.97556, console=console
    )
    return console.file.getvalue(), problems


def test_table_shows_every_layer_and_the_accuracies():
    text, problems = printed([row(), row(name="[last]", n=10, cycles=3784, predicted=3784)])
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    assert ["layer 1", "450 x 64 x 32", "14,760", "14,760", "98.7%", "yes"] in lines
    assert ["[last]", "450 x 64 x 10", "3,784", "3,784", "98.7%", "yes"] in lines
    assert ["all", "18,544", "18,544", "yes"] in lines
    assert ["Accuracy on 450 images: 97.33% INT8 on the hardware, 97.56% float32."] in lines
    assert problems == []


def test_table_columns_are_aligned():
    text, _ = printed([row(), row(cycles=7, predicted=7), row(cycles=1234567, predicted=1234567)])
    ends = {line.rstrip().rfind("98.7%") for line in text.splitlines() if "98.7%" in line}
    assert len(ends) == 1


def test_table_has_no_total_of_one_layer():
    text, _ = printed([row()])
    assert "all" not in text


def test_table_tells_of_a_mismatch():
    text, problems = printed([row(), row(match=False)])
    assert re.search(r"98\.7%\s+NO", text) and re.search(r"all .*NO", text)
    assert problems == ["results of layer 1 must equal the golden model's"]


def test_table_tells_of_a_wrong_prediction():
    text, problems = printed([row(predicted=14759)])
    assert "14,759" in text
    assert problems == ["cycles of layer 1 must equal the prediction of 14,759, not 14,760"]


def test_table_marks_what_is_wrong_in_colour():
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    layer_table([row(match=False)], images=1, accuracy=0, float_accuracy=1, console=console)
    assert re.search(r"\x1b\[1;31m +NO", console.file.getvalue())


@pytest.mark.parametrize("changes, message", [
    ({"m": 0}, "m must be 1 or more, not 0"),
    ({"cycles": -1}, "cycles must be 1 or more, not -1"),
    ({"utilization": 1.01}, "utilization must be in 0..1, not 1.01"),
    ({"utilization": float("nan")}, "utilization must be in 0..1, not nan"),
])  # fmt: skip
def test_rejects_bad_rows(changes, message):
    with rejects(ValueError, message):
        row(**changes)


def test_rejects_no_rows():
    with rejects(ValueError, "rows must not be empty"):
        printed([])


def test_rejects_a_bad_accuracy():
    with rejects(ValueError, "accuracy must be in 0..1, not 97.3"):
        layer_table([row()], images=1, accuracy=97.3, float_accuracy=1)
