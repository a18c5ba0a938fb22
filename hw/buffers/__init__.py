"""On-chip memories: operands before the array, results after it."""
