"""Simulation: simulator tools, cocotb benches, testbench helpers and the simulated transport."""
