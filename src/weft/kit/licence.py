"""The SPDX licence line in every file of a kit."""

import re

__all__ = ["IDENTIFIER", "licensed"]

IDENTIFIER = "BSD-2-Clause"
_TAG = "SPDX-License-Identifier"
# Comment syntax by the end of a file's name.
_COMMENTS = {
    (".c", ".h"): "/* {} */",
    (".py", ".core", ".toml", ".txt", ".sdc", ".xdc", ".lpf", "Makefile"): "# {}",
    (".v", ".veo", ".vlt", ".rdl"): "// {}",
    (".vhd",): "-- {}",
    (".md", ".xml"): "<!-- {} -->",
}
_FIRST = re.compile(rb"CAPI=2:|`verilator_config|<\?xml .*\?>")  # must stay the first line


def licensed(name: str, data: bytes) -> bytes:
    """``data`` with its SPDX identifier: in a comment, or in JSON as the first value.

    The identifier is the first line, the second line if the first must stay, or the last line of a
    Markdown page. Pages in ``html/`` are not changed: they include scripts and styles of PeakRDL.
    """
    if _TAG.encode() in data or name.startswith("html/") or name == "LICENSE":
        return data
    if name.endswith(".json"):
        indent = re.match(rb"\{\n( +)", data)[1]
        value = f'"{_TAG}": "{IDENTIFIER}",\n'.encode()
        return data.replace(b"{\n", b"{\n" + indent + value, 1)
    comment = next(comment for ends, comment in _COMMENTS.items() if name.endswith(ends))
    line = comment.format(f"{_TAG}: {IDENTIFIER}").encode() + b"\n"
    if _FIRST.match(data):
        first, rest = data.split(b"\n", 1)
        return first + b"\n" + line + rest
    return data + b"\n" + line if name.endswith(".md") else line + data
