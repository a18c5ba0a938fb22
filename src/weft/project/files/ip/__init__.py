"""The template of an IP core in the user's own Verilog."""
