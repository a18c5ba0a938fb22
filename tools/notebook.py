"""Execute notebooks without Jupyter, and store their outputs: ``python tools/notebook.py FILE``."""

import base64
import contextlib
import io
import json
import sys
from pathlib import Path

__all__ = ["code_cells", "execute", "main"]

DPI = 72  # of the stored pictures


def code_cells(notebook: dict) -> list[dict]:
    """The code cells of a notebook (nbformat 4), in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(notebook: dict) -> list[list[dict]]:
    """Run the code cells in order in one namespace; return the outputs of each cell.

    The outputs are the printed text and the matplotlib figures that the cell has left open, as in
    Jupyter. Needs the backend Agg. An exception of a cell is not caught.
    """
    import matplotlib.pyplot as plt

    plt.close("all")  # figures that the caller left open are not outputs of a cell
    namespace, outputs = {"__name__": "__main__"}, []
    for number, cell in enumerate(code_cells(notebook), 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append([{"name": "stdout", "output_type": "stream", "text": text}] * bool(text))
        outputs[-1] += [_picture(plt.figure(n)) for n in plt.get_fignums()]
        plt.close("all")
    return outputs


def _picture(figure):
    """The output for a figure, as a PNG."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=DPI, metadata={"Software": None})
    png = base64.b64encode(data.getvalue()).decode()
    width, height = (round(DPI * inches) for inches in figure.get_size_inches())
    return {
        "data": {"image/png": png, "text/plain": [f"<Figure size {width}x{height}>"]},
        "metadata": {}, "output_type": "display_data",
    }


def main(arguments) -> int:
    """Execute the notebooks and write them with their outputs; the exit code."""
    import matplotlib

    if not arguments:
        print("usage: notebook.py FILE ...", file=sys.stderr)
        return 2
    matplotlib.use("Agg")
    for path in map(Path, arguments):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        outputs = execute(notebook)
        for number, (cell, found) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
            cell["execution_count"], cell["outputs"] = number, found
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
