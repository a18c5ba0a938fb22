"""Quantizes a float model to int8 with onnxruntime: per channel, from calibration data."""

import contextlib
import logging
import tempfile
from pathlib import Path

from weft.files import write_bytes
from weft.models.errors import ModelError
from weft.models.onnx.calibration import Feeds
from weft.models.onnx.exported import rewrite
from weft.models.onnx.reading import upgraded

__all__ = ["METHODS", "prepare", "quantize"]

METHODS = {"min-max": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
MAX_BATCHES = 16  # of which onnxruntime keeps all activations at a time


def prepare(data: bytes, name: str) -> bytes:
    """The float model of a file, ready to be quantized.

    It has operator set 13 or newer, and the forms of `weft.models.onnx.exported`. onnxruntime has
    folded its constants, and its batch normalizations into the convolutions before them.

    Raises ModelError if the file is damaged, or quantized already.
    """
    from weft.models.onnx.fallback import needs_runtime

    needs_runtime("quantizing")
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = upgraded(data, name)
    quantized = [node for node in model.graph.node if "Quant" in node.op_type
                 or node.op_type.startswith("QLinear") or node.op_type.endswith("Integer")]
    if quantized:
        node = quantized[0]
        raise ModelError(
            f"{name}: must be a float model, but has the node {node.name or node.output[0]} "
            f"({node.op_type})"
        )
    rewrite(model)
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "float.onnx"), Path(folder, "prepared.onnx")
        write_bytes(source, model.SerializeToString())  # given a model, it makes external data
        try:
            quant_pre_process(source, path, skip_symbolic_shape=True)
        except Exception as error:  # of many types, from C++
            text = " ".join(str(error).split())[:300]
            raise ModelError(f"{name}: onnxruntime cannot prepare it: {text}") from error
        return path.read_bytes()


def quantize(
    prepared: bytes, name: str, feeds: Feeds, *, method: str = "min-max", advance=None
) -> bytes:
    """The model with int8 weights per channel and int8 activations, in the form QDQ.

    Parameters
    ----------
    prepared : bytes
        From `prepare`.
    name : str
        Name of the file; for messages.
    feeds : weft.models.onnx.calibration.Feeds
        Inputs from which the ranges of the activations are taken.
    method : str
        How: ``min-max``, ``entropy`` or ``percentile`` (99.999).
    advance : callable, optional
        Called after each batch.

    Raises
    ------
    ModelError
        If onnxruntime cannot quantize the model.

    Source: onnxruntime, ``quantize_static``.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    if method not in METHODS:
        raise ModelError(f"method must be {', '.join(METHODS)}, not {method!r}")
    stride = next(n for n in range(MAX_BATCHES, 0, -1) if len(feeds) % n == 0)
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "prepared.onnx"), Path(folder, "quantized.onnx")
        write_bytes(source, prepared)
        try:
            quantize_static(
                source, path, _reader(feeds, advance),
                quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod[METHODS[method]],
                extra_options={"CalibStridedMinMax": stride},
            )
        except Exception as error:  # of many types, from C++
            text = " ".join(str(error).split())[:300]
            raise ModelError(f"{name}: onnxruntime cannot quantize it: {text}") from error
        return path.read_bytes()


@contextlib.contextmanager
def _errors_alone():
    """onnxruntime prints errors alone: its warnings are about its own intermediate models."""
    import onnxruntime

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    onnxruntime.set_default_logger_severity(3)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(2)
        root.setLevel(level)


def _reader(feeds, advance):
    """The feeds as onnxruntime reads them: a range of them at a time."""
    from onnxruntime.quantization import CalibrationDataReader

    class Samples(CalibrationDataReader):
        """Gives one batch after another."""

        def __init__(self):
            self._batches = iter(())

        def __len__(self):
            return len(feeds)

        def set_range(self, start_index, end_index):
            """Give the batches of a range next."""
            self._batches = iter(feeds.batches(start_index, end_index))

        def get_next(self):
            """The next batch, or None."""
            batch = next(self._batches, None)
            if batch is not None and advance is not None:
                advance()
            return batch

    return Samples()
