"""Arithmetic of a width."""

__all__ = ["wrap32"]


def wrap32(value):
    """The int32 that equals ``value`` modulo 2^32."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
