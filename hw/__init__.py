"""The hardware, in Amaranth: job -> tiles -> cycles -> buffers -> skew -> array -> results."""
