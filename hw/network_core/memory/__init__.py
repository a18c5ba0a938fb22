"""The memory of a network core, who may use it, and the program memory behind AXI4."""
