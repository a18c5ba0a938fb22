"""Program files with other contents."""

import io
import json
import zipfile

__all__ = ["changed"]


def changed(contents, main=None, members=None, **options):
    """The file with another ``program.json``, whose object ``main`` changes.

    ``members`` returns the new bytes of the other members. ``options`` are of the ZipFile.
    """
    source = zipfile.ZipFile(io.BytesIO(contents))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name in source.namelist():
            data = source.read(name)
            if name == "program.json" and main:
                value = json.loads(data)
                main(value)
                data = json.dumps(value)
            elif members:
                data = members(data)
            archive.writestr(name, data)
    return buffer.getvalue()
