"""The DMA engine: operands from memory to the command stream, results to memory, by strides."""
