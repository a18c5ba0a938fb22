"""Wrappers that put the core behind AXI4-Lite, Wishbone B4, AXI4-Stream or an AXI4 master."""
