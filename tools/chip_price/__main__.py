"""Write the tables of ``docs/chip.md``: what networks would cost on the chip.

    WEFT_NETWORKS=folder python -m tools.chip_price

The folder has the int8 files of MLPerf Tiny, as for ``tools/networks.py``.
"""

import os
import sys
from pathlib import Path

from tools.chip_price.page import PATH, page


def main() -> int:
    folder = os.environ.get("WEFT_NETWORKS")
    if not folder:
        print("WEFT_NETWORKS must be a folder with the files of MLPerf Tiny", file=sys.stderr)
        return 2
    PATH.write_text(page(Path(folder)), encoding="utf-8")
    print(PATH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
