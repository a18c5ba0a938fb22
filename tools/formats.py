"""Copy sections of ``docs`` into the pages of formats that are part of every kit."""

import sys
from pathlib import Path

from weft.kit.documents import SECTIONS, sections

ROOT = Path(__file__).resolve().parent.parent


def main(root=ROOT):
    """Write the files; the exit code 0."""
    for page, (file, names) in SECTIONS.items():
        text = sections((root / "docs" / page).read_text(encoding="utf-8"), names)
        (root / "src/weft/kit/files" / file).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
