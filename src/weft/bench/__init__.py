"""Bench: designs placed and routed with several seeds, on an engine (`weft.tasks`).

`weft.bench.measure` measures all seeds of many designs. Finished runs are cached.
"""
