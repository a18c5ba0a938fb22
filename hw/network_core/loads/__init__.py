"""The loads of a network core: words of B, parameters and ADD tables."""
