"""TFLite models, whole or one operator cut out of one, in TFLite Micro and in LiteRT."""

import atexit
import importlib.util
import itertools
import math
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path

import flatbuffers
import numpy as np
import tflite

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.tflite.worker import CLOSE, OPEN, RUN, receive, send

__all__ = ["attempt", "cut", "litert", "memory", "model", "tflm", "with_outputs"]


# One operator cut out of a TFLite file, as a model of its own, for the runtime.
#
# The parser has no classes that write whole models, so the tables are written with flatbuffers. The
# options of an operator are copied field by field, whatever their types are.

# The options with a vector of integers, by their fields; other vectors cannot be copied.
VECTORS = {"ReshapeOptions": (0,), "SqueezeOptions": (0,)}
CODES = {name: getattr(tflite.BuiltinOptions, name) for name in vars(tflite.BuiltinOptions)}
KINDS = {name: getattr(tflite.TensorType, name) for name in vars(tflite.TensorType)}


def cut(file, operator, values):
    """A model with one operator.

    Parameters
    ----------
    file : File
    operator : TfliteOperator
    values : mapping
        Constants by tensor.

    Returns
    -------
    model : bytes
    fed : tuple of int
        Tensors of the file that are the inputs of the model, in their order.
    """
    used = (*operator.inputs, *operator.outputs, *operator.intermediates)
    numbers = sorted({number for number in used if number >= 0})
    place = {number: i for i, number in enumerate(numbers)} | {-1: -1}
    fed = tuple(dict.fromkeys(
        number for number in operator.inputs
        if number >= 0 and number not in values and number not in file.variables
    ))
    builder = flatbuffers.Builder(1024)
    buffers, tensors = [_buffer(builder, None)], []
    for number in numbers:
        value = values.get(number)
        if value is not None:
            buffers.append(_buffer(builder, _bytes(value, file.kinds[number])))
        index = len(buffers) - 1 if value is not None else 0
        tensors.append(_tensor(builder, file, number, index))
    options = _options(builder, operator)
    custom = _vector(builder, np.frombuffer(operator.custom_options, np.uint8))
    lists = [
        _vector(builder, np.array([place[i] for i in group], np.int32))
        for group in (operator.inputs, operator.outputs, operator.intermediates)
    ]
    tflite.OperatorStart(builder)
    tflite.OperatorAddOpcodeIndex(builder, 0)
    tflite.OperatorAddInputs(builder, lists[0])
    tflite.OperatorAddOutputs(builder, lists[1])
    if operator.intermediates:
        tflite.OperatorAddIntermediates(builder, lists[2])
    if operator.custom_options:
        tflite.OperatorAddCustomOptions(builder, custom)
    if options is not None:
        tflite.OperatorAddBuiltinOptionsType(builder, CODES[operator.kind])
        tflite.OperatorAddBuiltinOptions(builder, options)
    operators = _tables(builder, [tflite.OperatorEnd(builder)])
    tensors = _tables(builder, tensors)
    inputs = _vector(builder, np.array([place[i] for i in fed], np.int32))
    outputs = _vector(builder, np.array([place[i] for i in operator.outputs], np.int32))
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddTensors(builder, tensors)
    tflite.SubGraphAddInputs(builder, inputs)
    tflite.SubGraphAddOutputs(builder, outputs)
    tflite.SubGraphAddOperators(builder, operators)
    subgraphs = _tables(builder, [tflite.SubGraphEnd(builder)])
    buffers = _tables(builder, buffers)
    codes = _tables(builder, [_code(builder, operator)])
    tflite.ModelStart(builder)
    tflite.ModelAddVersion(builder, 3)
    tflite.ModelAddOperatorCodes(builder, codes)
    tflite.ModelAddSubgraphs(builder, subgraphs)
    tflite.ModelAddBuffers(builder, buffers)
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output()), fed


def _bytes(value, kind):
    if kind == "INT4":
        flat = np.zeros(value.size + value.size % 2, np.uint8)
        flat[: value.size] = value.ravel().view(np.uint8) & 15
        return flat[::2] | flat[1::2] << 4
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _buffer(builder, data):
    vector = _vector(builder, data, 16) if data is not None else None
    tflite.BufferStart(builder)
    if vector is not None:
        tflite.BufferAddData(builder, vector)
    return tflite.BufferEnd(builder)


def _vector(builder, array, alignment=1):
    """A vector of numbers whose first byte is aligned."""
    builder.StartVector(array.itemsize, array.size, max(alignment, array.itemsize))
    builder.head -= array.nbytes
    builder.Bytes[builder.head : builder.head + array.nbytes] = array.tobytes()
    return builder.EndVector()


def _tables(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _tensor(builder, file, number, buffer):
    tensor = file.tensors[number]
    quantization = tensor.quantization
    if quantization is not None:
        scale = _vector(builder, np.asarray(quantization.scale, np.float32))
        zero = _vector(builder, np.asarray(quantization.zero, np.int64))
        tflite.QuantizationParametersStart(builder)
        tflite.QuantizationParametersAddScale(builder, scale)
        tflite.QuantizationParametersAddZeroPoint(builder, zero)
        tflite.QuantizationParametersAddQuantizedDimension(builder, quantization.axis)
        quantization = tflite.QuantizationParametersEnd(builder)
    shape = _vector(builder, np.array(tensor.shape, np.int32))
    tflite.TensorStart(builder)
    tflite.TensorAddShape(builder, shape)
    tflite.TensorAddType(builder, KINDS[file.kinds[number]])
    tflite.TensorAddBuffer(builder, buffer)
    tflite.TensorAddIsVariable(builder, number in file.variables)
    if quantization is not None:
        tflite.TensorAddQuantization(builder, quantization)
    return tflite.TensorEnd(builder)


def _code(builder, operator):
    name = builder.CreateString(operator.custom) if operator.custom else None
    tflite.OperatorCodeStart(builder)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, min(operator.code, 127))
    tflite.OperatorCodeAddBuiltinCode(builder, operator.code)
    tflite.OperatorCodeAddVersion(builder, operator.version)
    if name is not None:
        tflite.OperatorCodeAddCustomCode(builder, name)
    return tflite.OperatorCodeEnd(builder)


def _options(builder, operator):
    """A copy of the table of options, or None."""
    table = operator.table
    if table is None:
        return None
    data, position = table.Bytes, table.Pos
    fields = VECTORS.get(operator.kind, ())
    methods = dir(getattr(tflite, operator.kind))
    if sum(name.endswith("Length") for name in methods) != len(fields):
        raise operator.error(f"options of type {operator.kind} cannot be copied")
    try:
        start = position - struct.unpack_from("<i", data, position)[0]
        size, end = struct.unpack_from("<HH", data, start)
        places = struct.unpack_from(f"<{max(size - 4, 0) // 2}H", data, start + 4)
        ends = sorted({*places, end} - {0})
        if min(start, position) < 0 or position + end > len(data):
            raise ValueError("they end outside it")
        values = {}
        for slot, at in enumerate(places):
            if at and slot in fields:
                where = position + at
                where += struct.unpack_from("<I", data, where)[0]
                count = struct.unpack_from("<I", data, where)[0]
                array = np.frombuffer(data, "<i4", count, where + 4)
                values[slot] = 0, _vector(builder, array)
            elif at:
                room = next((e for e in ends if e > at), at + 1) - at
                width = next(w for w in (8, 4, 2, 1) if w <= room and not (position + at) % w)
                raw = data[position + at : position + at + width]
                values[slot] = width, int.from_bytes(raw, "little")
    except (struct.error, ValueError) as error:
        raise operator.error(
            "options must lie inside the file, which is cut off or damaged"
        ) from error
    builder.StartObject(len(places))
    for slot, (width, value) in values.items():
        if not width:
            builder.PrependUOffsetTRelative(value)
        else:
            getattr(builder, f"PrependUint{8 * width}")(value)
        builder.Slot(slot)
    return builder.EndObject()


# A TFLite model, often of one operator, in TFLite Micro: the kernel ``tflite.model``.
#
# TFLite Micro trusts its models: a damaged one can crash it, or keep it busy for ever. So it runs
# in a process of its own (`worker`), which all models share, and each wait has a limit. Models that
# are only tried (`attempt`) have another process, so that a crash ends no session.

SPARE, ATTEMPTS = 1 << 17, 4  # bytes beside the tensors; attempts, each with four times the memory
LIMIT, TRIAL = 120, 30  # seconds that a request may take; the same if a model is only tried


def model(inputs, attributes, state):
    """The outputs of a model.

    ``attributes``: ``model`` : bytes, the file; ``memory`` : int, bytes of its tensors; ``label`` :
    str, for messages; ``outputs`` : int, their number.

    ``state`` keeps the interpreter, and with it the variables of the model, from run to run.
    """
    label = attributes["label"]
    with _Process.lock:
        opened = state.get("model")
        if opened is None or not opened.process.alive():
            opened = state["model"] = _Model(_Process.shared(label, LIMIT), attributes)
        data = [np.asarray(value, order="C") for value in inputs]
        numbers = [RUN, opened.identity, len(data), attributes["outputs"]]
        return opened.process.ask(label, numbers, data, attributes["outputs"])


def attempt(attributes, tensors, run=True):
    """Raise ModelError if TFLite Micro refuses a model; without its package nothing is tried.

    The model is opened. With ``run`` it runs, too: some operators refuse only then. Real values
    are 1, of which each function has a result. Integers can be indices or divisors: they are 0,
    and if the runtime refuses them, 1.

    Parameters
    ----------
    attributes : mapping
        As for `model`.
    tensors : sequence of weft.models.ir.Tensor
        The inputs.
    run : bool
    """
    if importlib.util.find_spec("tflite_micro") is None:
        return
    label = attributes["label"]
    with _Process.lock:
        tried = _Model(_Process.shared(label, TRIAL), attributes)
        for integer in (0, 1) if run else ():
            data = [_value(tensor, integer) for tensor in tensors]
            numbers = [RUN, tried.identity, len(data), attributes["outputs"]]
            try:
                tried.process.ask(label, numbers, data, attributes["outputs"])
                return
            except ModelError:
                if integer or not tried.process.alive():
                    raise


def _value(tensor, integer):
    """A value of a tensor: 1 if it has real values, else ``integer``."""
    number, kind = 1 if tensor.dtype.kind == "f" else integer, tensor.dtype
    if tensor.quantization is not None and kind.kind in "iu":
        scale, zero = tensor.quantization.scale[0], int(tensor.quantization.zero[0])
        limits = np.iinfo(kind)
        steps = round(min(1 / float(scale), 2.0**31)) if scale > 0 else 0
        number = min(max(zero + steps, limits.min), limits.max)
    return np.full(tensor.shape, number, kind)


def memory(tensors):
    """Bytes of tensors, each rounded up to 16."""
    return sum(-(-math.prod(t.shape) * t.dtype.itemsize // 16) * 16 for t in tensors)


class _Model:
    """A model in the process; the process forgets it when this object goes."""

    def __init__(self, process, attributes):
        self.process, self.identity = process, next(process.identities)
        data = np.frombuffer(attributes["model"], np.uint8)
        for turn in range(ATTEMPTS):
            size = (2 * attributes["memory"] + SPARE) * 4**turn
            try:
                process.ask(attributes["label"], [OPEN, self.identity, size], [data], 0)
                break
            except ModelError:
                if turn == ATTEMPTS - 1 or not process.alive():
                    raise
        self._finalizer = weakref.finalize(self, process.forget, self.identity)


class _Process:
    """A process; one for all models that run, and one for all that are tried."""

    lock = threading.RLock()
    running: dict[int, "_Process"] = {}  # by their limits

    def __init__(self, limit):
        self._limit = limit
        self.identities = itertools.count()
        self._forgotten = []
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("worker.py")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._log, start_new_session=True,
        )

    @classmethod
    def shared(cls, label, limit):
        """The process with this limit of a request, in seconds; it is started if none runs."""
        if importlib.util.find_spec("tflite_micro") is None:
            raise ModelError(
                f"{label} needs the package tflite-micro, for Linux on x86-64 alone; "
                + to_install(extra="networks")
            )
        found = cls.running.get(limit)
        if found is None or not found.alive():
            if found is not None:
                found.close()
            found = cls.running[limit] = cls(limit)
        return found

    def alive(self):
        """Whether it can take requests."""
        return self._process.poll() is None

    def forget(self, identity):
        """Release a model, with the next request: this may be called at any moment."""
        self._forgotten.append(identity)

    def ask(self, label, numbers, data, count):
        """Send a request; the ``count`` arrays of the answer. ModelError without an answer."""
        timer = threading.Timer(self._limit, self._process.kill)
        timer.start()
        try:
            while self._forgotten:
                send(self._process.stdin, [CLOSE, self._forgotten.pop()])
            send(self._process.stdin, numbers, *data)
            if receive(self._process.stdout) == 0:
                return [receive(self._process.stdout) for _ in range(count)]
            text = receive(self._process.stdout).tobytes().decode()
        except (EOFError, OSError) as error:
            code = self._end()
            raise ModelError(
                f"{label}: TFLite Micro stopped (exit code {code}), or took more than"
                f" {self._limit} s"
            ) from error
        except BaseException:  # an interrupt: its answer must not meet the next request
            self._process.kill()
            self._process.wait()
            raise
        finally:
            timer.cancel()
        raise ModelError(f"{label}: TFLite Micro reports: {text}{self._reason()}")

    def _end(self):
        """The exit code of the process, which is about to end, or is killed."""
        try:
            return self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _reason(self):
        """The last line that the runtime printed."""
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode("utf-8", "replace").split("\n")
        self._log.seek(0, 2)
        lines = [line.strip() for line in lines if line.strip()]
        return f" ({lines[-1]})" if lines else ""

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            try:
                stream.close()
            except OSError:
                continue  # the rest of the data is not needed any more


@atexit.register
def _close():
    for process in _Process.running.values():
        process.close()


# Whole files in their runtimes, TFLite Micro and LiteRT, to compare results with.

def tflm(
    data: bytes, inferences: list, tensors, outputs: int, name: str = "the network"
) -> list:
    """Return the outputs of TFLite Micro for each inference.

    Parameters
    ----------
    data : bytes
        The file.
    inferences : list of list of array
        The inputs of each inference.
    tensors : sequence of weft.models.ir.Tensor
        All tensors of the file, for the memory that they need.
    outputs : int
        Number of outputs.
    name : str
        Of the file, for messages.

    Raises
    ------
    ModelError
        If the package tflite-micro is not installed, or it cannot run the file.
    """
    attributes = {"model": data, "memory": memory(tensors), "label": name, "outputs": outputs}
    state: dict = {}
    return [model(inputs, attributes, state) for inputs in inferences]


def litert(data: bytes, inferences: list, name: str = "the network") -> list:
    """Return the outputs of LiteRT, with its default kernels, for each inference.

    ``name`` : of the file, for messages.

    Raises ModelError if the package ai-edge-litert is not installed, or it cannot run the file.
    """
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ModelError(
            f"the package ai-edge-litert is not installed; {to_install(extra='interop')}"
        ) from error
    try:
        interpreter = Interpreter(model_content=data, num_threads=1)
        interpreter.allocate_tensors()
        places = [detail["index"] for detail in interpreter.get_input_details()]
        outputs = [detail["index"] for detail in interpreter.get_output_details()]
        results = []
        for inputs in inferences:
            for place, value in zip(places, inputs, strict=True):
                interpreter.set_tensor(place, value)
            interpreter.invoke()
            results.append([interpreter.get_tensor(place) for place in outputs])
    except (RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:300]
        raise ModelError(f"{name}: LiteRT cannot run it: {text}") from error
    return results


def with_outputs(data: bytes, numbers: list[int]) -> tuple[bytes, list[int]]:
    """The file with other outputs: these tensors, as far as the file has them, each once.

    A new vector of outputs is appended to the file, and the field of the first subgraph leads to
    it: offsets of flatbuffers are relative, and lead forward.

    Returns the file, and the tensors in the order of its outputs.
    """
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    count = graph.TensorsLength()
    kept = [number for number in dict.fromkeys(numbers) if number < count]
    table = graph._tab  # the parser has no other way to a field's place
    place = table.Pos + table.Offset(8)  # the third field: outputs
    vector = struct.pack(f"<I{len(kept)}i", len(kept), *kept)
    start = -(-len(data) // 4) * 4
    whole = bytearray(data.ljust(start, b"\0") + vector)
    whole[place : place + 4] = struct.pack("<I", start - place)
    return bytes(whole), kept
