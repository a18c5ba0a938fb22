"""From the command stream to the cycles of the array."""
