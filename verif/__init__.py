"""Verification that does not ship: benches, reference models, proofs; tests and tools import it.

The root of the tree must be on Python's path: pytest adds it, and so does ``python -m tools.NAME``.
"""
