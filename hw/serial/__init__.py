"""Links: the core's streams over the wires of a board."""
