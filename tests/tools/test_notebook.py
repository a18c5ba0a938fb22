"""tools/notebook.py: it runs the cells in one namespace and stores their outputs."""

import base64
import json

import pytest
from matplotlib import pyplot
from tooling import load

SOURCES = [
    "numbers = [1, 2]\nprint(sum(numbers))",
    "import matplotlib.pyplot as plt\n",
    "figure, _ = plt.subplots(figsize=(2, 1))\nnumbers.append(3)",
    "print(numbers)\nprint('end')",
]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return load("notebook")


def notebook(sources):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}]
    for source in sources:
        cells.append({
            "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
            "source": source.splitlines(keepends=True),
        })
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_stores_the_outputs_of_each_cell(tool, tmp_path):
    pyplot.figure()  # left open by other code: not an output of a cell
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps(notebook(SOURCES)), encoding="utf-8")
    assert tool.main([path]) == 0
    text, *cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert text == notebook([])["cells"][0]
    assert [cell["execution_count"] for cell in cells] == [1, 2, 3, 4]
    assert cells[0]["outputs"] == [
        {"name": "stdout", "output_type": "stream", "text": ["3\n"]}
    ]
    assert cells[1]["outputs"] == []
    (picture,) = cells[2]["outputs"]
    assert picture["data"]["text/plain"] == ["<Figure size 144x72>"]
    png = base64.b64decode(picture["data"]["image/png"])
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == [144, 72]
    assert cells[3]["outputs"][0]["text"] == ["[1, 2, 3]\n", "end\n"]


def test_an_error_of_a_cell_leaves_the_file_as_it_was(tool, tmp_path):
    path = tmp_path / "one.ipynb"
    text = json.dumps(notebook(["print(1)", "1 / 0"]))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        tool.main([path])
    assert path.read_text(encoding="utf-8") == text


def test_usage(tool, capsys):
    assert tool.main([]) == 2
    assert capsys.readouterr().err == "usage: notebook.py FILE ...\n"
