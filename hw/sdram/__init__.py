"""A controller of SDR SDRAM chips behind AXI4."""
