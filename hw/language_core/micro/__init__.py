"""The language core with a microprogram, in few logic cells."""
