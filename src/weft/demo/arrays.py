"""The rule of a layer's arrays: each has its type, fits the weights, and holds finite numbers."""

import numpy as np

__all__ = ["require_arrays"]


def require_arrays(layer, types):
    """Refuse a layer whose arrays break their rule, by name.

    ``types`` has the dtype of every array, by its name in the layer. Each is [N, K], as the
    ``weights`` are, where it is named so; else [N].

    Raises TypeError for another dtype, ValueError for another shape and what is not finite.
    """
    shape = np.shape(layer.weights)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"weights must be of shape [N, K], not {shape}")
    for name, dtype in types.items():
        value = np.asarray(getattr(layer, name))
        wanted = shape if name.endswith("weights") else shape[:1]
        if value.dtype != dtype:
            raise TypeError(f"{name} must be {np.dtype(dtype)}, not {value.dtype}")
        if value.shape != wanted:
            raise ValueError(f"{name} must be of shape {wanted}, not {value.shape}")
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{name} must be finite, not {value[~np.isfinite(value)][0]}")
