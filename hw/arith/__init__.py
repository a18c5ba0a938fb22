"""What a PE computes: MAC leaves behind one protocol."""
