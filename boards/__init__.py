"""FPGA boards, one file for each, and the flow from a Config to a bitstream."""
