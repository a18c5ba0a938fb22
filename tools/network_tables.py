"""Writes tables about the networks of MLPerf Tiny into a page of the documents.

The folder WEFT_NETWORKS has the int8 files of MLPerf Tiny (github.com/mlcommons/tiny):
``ad01_int8.tflite``, ``kws_int8.tflite``, ``resnet8_int8.tflite``, ``vww_96_int8.tflite``.
"""

import os
import re
import sys
from pathlib import Path

__all__ = ["replaced", "write"]


def replaced(path, target, tables) -> str:
    """The text of a page with new tables after its comment ``begin: make <target>``."""
    pattern = re.compile(rf"(<!-- begin: make {target} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    text = path.read_text(encoding="utf-8")
    return pattern.sub(lambda found: found[1] + tables + found[2], text)


def write(path, page) -> int:
    """Write ``page(folder)`` to ``path``; the exit code."""
    folder = os.environ.get("WEFT_NETWORKS")
    if not folder:
        print("WEFT_NETWORKS must be a folder with the files of MLPerf Tiny", file=sys.stderr)
        return 2
    path.write_text(page(Path(folder)), encoding="utf-8")
    print(path)
    return 0
