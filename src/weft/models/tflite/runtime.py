"""Runs a TFLite model, often of one operator, in TFLite Micro: the kernel ``tflite.model``.

TFLite Micro trusts its models: a damaged one can crash it, or keep it busy for ever. So it runs in
a process of its own (`worker`), which all models share, and each wait has a limit.
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

__all__ = ["memory", "model"]

SPARE, ATTEMPTS = 1 << 17, 4  # bytes beside the tensors; attempts, each with four times the memory
LIMIT = 120  # seconds that a request may take


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
            opened = state["model"] = _Model(_Process.shared(label), attributes)
        data = [np.asarray(value, order="C") for value in inputs]
        numbers = [RUN, opened.identity, len(data), attributes["outputs"]]
        return opened.process.ask(label, numbers, data, attributes["outputs"])


def memory(tensors):
    """Bytes of tensors, each rounded up to 16."""
    return sum(-(-math.prod(t.shape) * t.dtype.itemsize // 16) * 16 for t in tensors)


class _Model:
    """A model in the process; the process forgets it when this object goes."""

    def __init__(self, process, attributes):
        self.process, self.identity = process, next(process.identities)
        data = np.frombuffer(attributes["model"], np.uint8)
        for attempt in range(ATTEMPTS):
            size = (2 * attributes["memory"] + SPARE) * 4**attempt
            try:
                process.ask(attributes["label"], [OPEN, self.identity, size], [data], 0)
                break
            except ModelError:
                if attempt == ATTEMPTS - 1 or not process.alive():
                    raise
        self._finalizer = weakref.finalize(self, process.forget, self.identity)


class _Process:
    """The process; one for all models."""

    lock = threading.RLock()
    running = None

    def __init__(self):
        self.identities = itertools.count()
        self._forgotten = []
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("worker.py")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._log, start_new_session=True,
        )

    @classmethod
    def shared(cls, label):
        """The running process; it is started if none runs."""
        if importlib.util.find_spec("tflite_micro") is None:
            raise ModelError(
                f"{label} needs the package tflite-micro, for Linux on x86-64 alone; "
                + to_install(extra="networks")
            )
        if cls.running is None or not cls.running.alive():
            if cls.running is not None:
                cls.running.close()
            cls.running = cls()
        return cls.running

    def alive(self):
        """Whether it can take requests."""
        return self._process.poll() is None

    def forget(self, identity):
        """Release a model, with the next request: this may be called at any moment."""
        self._forgotten.append(identity)

    def ask(self, label, numbers, data, count):
        """Send a request; the ``count`` arrays of the answer. ModelError without an answer."""
        timer = threading.Timer(LIMIT, self._process.kill)
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
                f"{label}: TFLite Micro stopped (exit code {code}), or took more than {LIMIT} s"
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
    if _Process.running is not None:
        _Process.running.close()
