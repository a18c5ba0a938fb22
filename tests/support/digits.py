"""The files of the two int8 networks for handwritten digits: a CNN and an MLP."""

from pathlib import Path

__all__ = ["CNN", "MLP"]

_ROOT = Path(__file__).resolve().parents[2]
CNN = _ROOT / "examples" / "digits_cnn.tflite"
MLP = _ROOT / "src" / "weft" / "demo" / "digits_mlp_int8.tflite"
