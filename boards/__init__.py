"""FPGA boards: one file a board, plus what they share."""
