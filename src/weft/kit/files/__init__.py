"""What a kit takes over as it is: driver, bench, examples. Nothing here is imported by Weft."""
