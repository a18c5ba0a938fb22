"""The cycle model: how long any commands take on any Config, to the cycle."""

from weft.cycles.model import Prediction, predict

__all__ = ["Prediction", "predict"]
