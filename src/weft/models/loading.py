"""Opens trained networks and compiled programs, by their contents."""

import os
from pathlib import Path

from weft.design import PerKind
from weft.models.errors import ModelError
from weft.models.ir import Graph
from weft.models.language.model import LanguageModel
from weft.models.language.program import LanguageProgram
from weft.models.network_core.program import NetworkCoreProgram
from weft.models.program import CompiledNetwork, Program
from weft.models.progress import Watch
from weft.models.target import target_of

__all__ = ["NeuralNetwork", "load", "refuse_language"]

PROGRAMS = PerKind(product=Program, network=NetworkCoreProgram)


def _for_product_core(graph, target, activations, batch, watch):
    from weft.models.compiler import compile_graph

    if batch != 1:
        raise ModelError(f"batch must be 1 for a product core, not {batch}")
    return compile_graph(graph, target, fuse=not activations, watch=watch)


def _for_network_core(graph, target, activations, batch, watch):
    from weft.models.network_core.compiler import compile_network_core

    return compile_network_core(
        graph, target, batch=batch, activations=activations, watch=watch
    )


COMPILERS = PerKind(product=_for_product_core, network=_for_network_core)


class NeuralNetwork:
    """A trained network, as `weft.load` reads it.

    Parameters
    ----------
    graph : Graph

    Attributes
    ----------
    graph : Graph
    data : bytes
        The file, for its runtime; with the tensors that it has in other files.
    """

    def __init__(self, graph: Graph, data: bytes):
        self.graph = graph
        self.data = data

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return self.graph.name

    def compile(
        self, target, *, activations: bool = False, batch: int = 1, watch: Watch | None = None
    ) -> Program | NetworkCoreProgram:
        """Compile the network for a target.

        Parameters
        ----------
        target : str, path, Config, NetworkCoreConfig or weft.models.target.NetworkTarget
            A board, a TOML file of Config fields, or a Config. A NetworkCoreConfig, or a file with
            a table ``[network_core]``, gives a program for a network core.
        activations : bool
            Keep the output of each operator, so that a session can return it: tables of activations
            are then not fused into the products before them, and no channels are left out.
        batch : int
            Inferences that a network core computes at once; 1 for other cores, which take any
            number.
        watch : callable, optional
            Called now and then with the part that is done, from 0 to 1.

        Raises
        ------
        ModelError
            If the network breaks a rule, or the target is not known.
        weft.config.ConfigError
            If a TOML file of the target is not valid.
        """
        found = target_of(target)
        return COMPILERS.of(found)(self.graph, found, activations, batch, watch)

    def report(self, target, against=None):
        """Return a `weft.models.report.Report` for a target, beside a second one if given.

        The second target may be a core of the other kind.

        Raises ModelError and ConfigError as `compile` does.
        """
        from weft.models.report import report

        other = None if against is None else self.compile(against)
        return report(self.compile(target), other)


def load(
    source, name: str | None = None, *, shapes=None, tokenizer=None
) -> NeuralNetwork | CompiledNetwork | LanguageModel | LanguageProgram:
    """Read a trained network (``.tflite``, ``.onnx``), a language model (``.gguf``, ``.bin`` of
    llama2.c, ``.npz`` of a microGPT, a folder of Hugging Face), or a compiled program (``.weft``).

    Parameters
    ----------
    source : path or bytes
        A file or a folder, or the contents of a file. The contents decide which kind it is. An
        ``.onnx`` file may have tensors in other files of its folder; its contents alone may not.
        Language models are read from files only.
    name : str, optional
        Name of the network; by default the file's name without its suffix, or ``network``.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs with dynamic dimensions, for ONNX: ``{"input": (1, 3, 224, 224)}``.
    tokenizer : path, optional
        The tokenizer of a ``.bin`` file; by default ``tok512.bin``, for 512 tokens, or
        ``tokenizer.bin`` in its folder. Other models have it in their files.

    Raises
    ------
    ModelError
        If the contents are damaged or of another kind, or an operator cannot be run.
    OSError
        If the file cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data, file, folder = bytes(source), name or "network", None
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_char_device():  # some have no end
            raise ModelError(f"network must be a file: {path} is a device")
        model = _language_model(path, name, shapes, tokenizer)
        if model is not None:
            return model
        if path.is_dir():
            raise ModelError(
                f"network must be a .tflite, .onnx, .gguf, .bin, .npz or .weft file, or a folder"
                f" with config.json: {path} is another folder"
            )
        data, file, folder = path.read_bytes(), path.name, path.parent
    else:
        raise ModelError(f"source must be a path or bytes, not a {type(source).__name__}")
    stem, suffix = os.path.splitext(file)
    name = name or stem
    is_onnx = data[:2] != b"PK" and data[4:8] != b"TFL3" and suffix in (".onnx", "")
    if shapes and not is_onnx:
        raise ModelError(f"{file}: shapes must be for an .onnx file; other files have fixed shapes")
    if tokenizer is not None:
        raise ModelError(f"{file}: tokenizer must be for a .bin file of llama2.c")
    if data[:2] == b"PK" or suffix == ".weft":
        from weft.models.program_file import read_program

        return read_program(data, file, PROGRAMS, LanguageProgram)
    if data[4:8] == b"TFL3" or suffix == ".tflite":
        from weft.models.tflite import load as import_file
        from weft.models.tflite.reader import check_kind

        check_kind(data, file)
    elif is_onnx:
        from weft.models.onnx import load as import_onnx
        from weft.models.onnx.source import self_contained

        file = f"{name.removesuffix('.onnx')}.onnx"
        if folder is not None:
            data = self_contained(data, file, folder)
        return NeuralNetwork(import_onnx(data, file, shapes=shapes), data)
    else:
        raise ModelError(
            f"{file} must be a .tflite, .onnx, .gguf, .bin, .npz or .weft file, not one of"
            f" {suffix}"
        )
    return NeuralNetwork(import_file(data, name), data)


def _language_model(path, name, shapes, tokenizer):
    """The language model of a file or a folder; None if it has none."""
    is_folder = path.is_dir()
    if is_folder:
        kind = "Hugging Face" if (path / "config.json").exists() else ""
    else:
        with path.open("rb") as file:
            start = file.read(8)
        kind = {".bin": "llama2.c", ".gguf": "GGUF"}.get(path.suffix, "")
        if start[:4] == b"GGUF":
            kind = "GGUF"
        elif path.suffix == ".npz":
            kind = "microGPT"
        elif start[:4] == b"PK\3\4" or start[4:] == b"TFL3":
            kind = ""
    if not kind:
        return None
    if shapes:
        raise ModelError(f"{path.name}: shapes must be for an .onnx file; others have fixed shapes")
    if tokenizer is not None and kind != "llama2.c":
        raise ModelError(f"{path.name}: tokenizer must be for a .bin file; {kind} has its own")
    name = name or (path.name if is_folder else path.stem)
    if kind == "llama2.c":
        from weft.models.language import llama2c

        return llama2c.load_file(path, name, tokenizer)
    if kind == "GGUF":
        from weft.models.language import gguf_file

        return gguf_file.load(path, name)
    if kind == "microGPT":
        from weft.models.language import microgpt

        return microgpt.load(path, name)
    from weft.models.language import hugging_face

    return hugging_face.load(path, name)


def refuse_language(found, source) -> None:
    """Raise ModelError for a language model, which is no network of operators."""
    if isinstance(found, LanguageModel | LanguageProgram):
        raise ModelError(
            f"{source} is a language model: weft run, weft compile and weft report take it"
        )
