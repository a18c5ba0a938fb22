"""Whatever needs a simulator: its tools, benches that cocotb imports, the simulated transport."""
