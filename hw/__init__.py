"""The hardware, in Amaranth.

In the product core: job -> tiles -> cycles -> buffers -> skew -> array -> results. The network
core, the DMA engine, the buses and the serial port have packages of their own.
"""
