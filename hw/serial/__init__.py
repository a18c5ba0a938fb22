"""The serial link: the core's streams as checked frames over two wires."""
