"""Write the tables of ``docs/chip.md``: what networks would cost on the chip.

    WEFT_NETWORKS=folder python -m tools.chip_price
"""

import sys

from tools.chip_price.page import PATH, page
from tools.network_tables import write

if __name__ == "__main__":
    sys.exit(write(PATH, page))
