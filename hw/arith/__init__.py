"""Arithmetic of a processing element: the MAC cells, behind one protocol."""
