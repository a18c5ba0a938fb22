"""What every file of a kit says of its licence: a line with an SPDX identifier."""

import re

__all__ = ["IDENTIFIER", "licensed"]

IDENTIFIER = "BSD-2-Clause"
_TAG = "SPDX-License-Identifier"
# How a comment is written, by the end of a file's name.
_COMMENTS = {
    (".c", ".h"): "/* {} */",
    (".py", ".core", ".toml", ".txt", ".sdc", ".xdc", ".lpf", "Makefile"): "# {}",
    (".v", ".veo", ".vlt", ".rdl"): "// {}",
    (".vhd",): "-- {}",
    (".md", ".xml"): "<!-- {} -->",
}
_FIRST = re.compile(rb"CAPI=2:|`verilator_config|<\?xml .*\?>")  # lines that must stay the first


def licensed(name: str, data: bytes) -> bytes:
    """A file with its identifier: in its first comment, or of JSON as its first value.

    Pages in ``html/`` are left alone: PeakRDL's own scripts and styles are among them.
    """
    if _TAG.encode() in data or name.startswith("html/") or name == "LICENSE":
        return data
    if name.endswith(".json"):
        indent = re.match(rb"\{\n( +)", data)[1]
        value = f'"{_TAG}": "{IDENTIFIER}",\n'.encode()
        return data.replace(b"{\n", b"{\n" + indent + value, 1)
    mark = next(comment for ends, comment in _COMMENTS.items() if name.endswith(ends))
    line = mark.format(f"{_TAG}: {IDENTIFIER}").encode() + b"\n"
    if _FIRST.match(data):
        first, rest = data.split(b"\n", 1)
        return first + b"\n" + line + rest
    return data + b"\n" + line if name.endswith(".md") else line + data
