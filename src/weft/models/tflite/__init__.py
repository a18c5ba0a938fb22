"""Imports TFLite files: each operator becomes a matrix product or an operator of the host."""

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.ir import Graph

__all__ = ["load"]


def load(data: bytes, name: str) -> Graph:
    """Import a TFLite file.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        Its name without the suffix, for messages.

    Raises
    ------
    ModelError
        If the file is damaged, breaks a rule of its operators, or has an operator that neither
        Weft nor TFLite Micro has; or if the package tflite is not installed.
    """
    try:
        from weft.models.tflite.importer import import_file
    except ModuleNotFoundError as error:
        if error.name not in ("tflite", "flatbuffers"):
            raise
        raise ModelError(
            f"{name}: a TFLite file needs the package {error.name}; "
            + to_install(extra="networks")
        ) from error
    return import_file(data, name)
