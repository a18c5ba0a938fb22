"""Prices designs that run whole networks on the chip: cycles, block RAMs and bytes.

``docs/chip.md`` describes the design, which is not built yet.
"""
