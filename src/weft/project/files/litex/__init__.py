"""The template of a SoC by LiteX with a Weft core."""
