"""Streams: FIFOs, the skid buffer, and what passes from one clock to another."""
