"""What a step of an int8 MAC cell adds to its sum, by Python integers."""

__all__ = ["step_sum"]


def step_sum(cell, a, b):
    """The value that a step adds: the inner product plus its correction terms."""
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    if not cell.CORRECTED:
        return dot
    return dot + sum(v[d] * v[d + 1] for v in (a, b) for d in range(0, len(a), 2))
