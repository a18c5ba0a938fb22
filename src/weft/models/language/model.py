"""A language model as a file has it, and its compilation."""

import dataclasses
from collections.abc import Collection

import numpy as np

from weft.golden.language import Shape, Weights
from weft.models.errors import ModelError, require
from weft.models.language.program import LanguageProgram
from weft.models.language.quantization import (
    INT8,
    MAX_POSITIONS,
    check_limits,
    observe,
    quantize,
    sampled_texts,
)
from weft.models.language.tokenizer import Tokenizer

__all__ = ["LanguageModel", "limited_shape", "refuse_unread"]

CALIBRATION_SEED = 1


def limited_shape(name: str, **fields) -> Shape:
    """Return the Shape of a file, with at most 512 positions; ModelError if it breaks a rule.

    It allocates nothing: a wrong size is found before weights are read.
    """
    try:
        shape = Shape(**fields)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: {error}") from error
    require(
        shape.positions > 1,
        f"{name}: positions must be 2 or more, so that a token can follow another, not 1",
    )
    shape = dataclasses.replace(shape, positions=min(shape.positions, MAX_POSITIONS))
    try:
        check_limits(shape)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    return shape


def refuse_unread(name: str, tensors: Collection[str]) -> None:
    """Raise ModelError if a file has more tensors than the model: a bias, a norm of the heads."""
    if tensors:
        raise ModelError(
            f"{name}: the model must have the tensors of the kind llama, without bias, and no"
            f" other one: {min(tensors)}"
        )


class LanguageModel:
    """A language model in float32 with its tokenizer, as `weft.load` reads it.

    Parameters
    ----------
    name : str
        Name of the file without its suffix.
    source : str
        The kind of file: ``llama2.c``, ``GGUF``, ``Hugging Face`` or ``microGPT``.
    weights : Weights
        With at most 512 positions.
    tokenizer : Tokenizer
    file_positions : int
        The positions that the file tells.

    Raises
    ------
    ModelError
        If a weight is no number, or the tokenizer has other tokens than the model.
    """

    def __init__(
        self, name: str, source: str, weights: Weights, tokenizer: Tokenizer, file_positions: int
    ):
        for field in dataclasses.fields(weights):
            value = getattr(weights, field.name)
            if isinstance(value, np.ndarray) and not np.isfinite(value).all():
                raise ModelError(f"{name}: {field.name} must be numbers; the file is damaged")
        require(
            tokenizer.bos >= 0, f"{name}: the tokenizer must have a token that starts a text"
        )
        try:
            tokenizer.check(weights.shape.vocab)
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from error
        self.name, self.source = name, source
        self.weights, self.tokenizer, self.file_positions = weights, tokenizer, file_positions

    def compile(self, weights: str = INT8) -> LanguageProgram:
        """Quantize the model; the ranges of its maps come from texts that it writes itself.

        ``weights`` is ``int8`` or ``int4``. Raises ModelError if a scale is outside the limits of
        the integers, and for a microGPT with weights of int4.
        """
        try:
            texts = sampled_texts(self.weights, self.tokenizer.bos, CALIBRATION_SEED)
            integers = quantize(self.weights, observe(self.weights, texts), weights)
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from error
        return LanguageProgram(
            name=self.name, source=self.source, weights=integers, tokenizer=self.tokenizer,
            file_positions=self.file_positions,
        )
