"""The check of a layer's arrays: type, shape, and finite values."""

import numpy as np

__all__ = ["require_arrays"]


def require_arrays(layer, types):
    """Check the arrays of a layer.

    ``types`` gives the dtype of each array by its attribute name. Arrays whose name ends with
    ``weights`` have the shape [N, K], all others [N].

    Raises TypeError for a wrong dtype, ValueError for a wrong shape or a value that is not finite.
    """
    shape = np.shape(layer.weights)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"weights must be of shape [N, K], not {shape}")
    for name, dtype in types.items():
        value = np.asarray(getattr(layer, name))
        expected = shape if name.endswith("weights") else shape[:1]
        if value.dtype != dtype:
            raise TypeError(f"{name} must be {np.dtype(dtype)}, not {value.dtype}")
        if value.shape != expected:
            raise ValueError(f"{name} must be of shape {expected}, not {value.shape}")
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{name} must be finite, not {value[~np.isfinite(value)][0]}")
