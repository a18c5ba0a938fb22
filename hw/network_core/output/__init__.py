"""The output of a network core: from the sums of a tile to a map in the memory."""
