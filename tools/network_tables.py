"""The folder of the networks of MLPerf Tiny, and tables in pages.

The folder WEFT_NETWORKS has the int8 files of MLPerf Tiny (github.com/mlcommons/tiny):
``ad01_int8.tflite``, ``kws_int8.tflite``, ``resnet8_int8.tflite``, ``vww_96_int8.tflite``.
"""

import os
import re
import sys
from pathlib import Path

__all__ = ["networks_folder", "replaced"]


def networks_folder() -> Path | None:
    """The folder WEFT_NETWORKS; None, with a message, if it is not set."""
    folder = os.environ.get("WEFT_NETWORKS")
    if not folder:
        print("WEFT_NETWORKS must be a folder with the files of MLPerf Tiny", file=sys.stderr)
        return None
    return Path(folder)


def replaced(path: Path, tables: dict[str, str]) -> str:
    """The text of a page with new tables: each after its comment ``begin: <name>``."""
    text = path.read_text(encoding="utf-8")
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda found, new=table: found[1] + new + found[2], text)
        if count != 1:
            comment = f"<!-- begin: {name} -->"
            raise ValueError(f"{path} must have the comment {comment} once, not {count}")
    return text
