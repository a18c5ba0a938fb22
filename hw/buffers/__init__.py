"""On-chip memories: operands before the array, results after the array."""
