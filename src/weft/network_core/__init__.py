"""Networks on the chip: the parameters of such a core, and the list that it executes."""
