"""The fixed files of a kit: driver, bench, examples. Weft itself imports none of them."""
