"""The systolic array: processing elements, their grid, and the skew at its edges."""
