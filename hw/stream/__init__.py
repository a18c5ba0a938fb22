"""Streams: FIFOs, the skid buffer, and clock-domain crossings."""
