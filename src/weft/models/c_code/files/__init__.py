"""Fixed C files of a generated network: the layers and operators that its code calls."""
