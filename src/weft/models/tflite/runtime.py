"""Runs a TFLite model, often of one operator, in TFLite Micro: the kernel ``tflite.model``.

TFLite Micro trusts its models: a damaged one can crash it, or keep it busy for ever. So it runs in
a process of its own (`worker`), which all models share, and each wait has a limit. Models that are
only tried (`attempt`) have another process, so that a crash ends no session.
"""

import atexit
import importlib.util
import itertools
import math
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path

import numpy as np

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.tflite.worker import CLOSE, OPEN, RUN, receive, send

__all__ = ["attempt", "memory", "model"]

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
