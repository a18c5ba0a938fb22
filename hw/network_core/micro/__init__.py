"""A network core in few logic cells: a microprogram controls an array of one row."""
