"""Projects of a user: a folder with a design, its board, a test and a program, outside of Weft."""
