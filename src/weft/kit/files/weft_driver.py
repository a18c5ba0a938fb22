"""The C driver of this kit, compiled for this machine, for tests of whatever core it talks to."""

import ctypes
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-O1"]
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
EXCHANGE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
    ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint),
)
_P, _U, _D = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_ssize_t


class Weights(ctypes.Structure):
    """``weft_weights``."""

    _fields_ = [(name, _U) for name in ("n", "k", "page", "generation")]


class Product(ctypes.Structure):
    """``weft_product``."""

    _fields_ = [
        ("m", _U), ("n", _U), ("k", _U), ("a", _P), ("a_row", _D), ("a_k", _D), ("b", _P),
        ("b_k", _D), ("b_col", _D), ("weights", ctypes.POINTER(Weights)), ("c", _P),
        ("c_row", _D), ("finish", ctypes.c_uint), ("columns", _P), ("bias", _P),
    ]


class Driver:
    """The driver of one core, compiled for this machine, its registers those of ``space``.

    Parameters
    ----------
    library : path
    space : object
        With ``read(address)``, ``write(address, value)``, ``memory`` (an array of bytes that the
        core can see) and ``exchange(commands, result_bytes)``, which gives words and a status.
    prefix : str
        What the driver's names start with.
    """

    Weights, DONE, READ = Weights, DONE, READ  # for tests

    def __init__(self, library, space, prefix="weft"):
        self.space, self.prefix = space, prefix
        self.lib = ctypes.CDLL(str(library))
        self.taken = 0
        self._kept = [READ(space.read), WRITE(space.write), EXCHANGE(self._exchange)]
        for name, hook in zip(("read", "write"), self._kept, strict=False):
            self.variable(f"test_{name}").value = ctypes.cast(hook, _P).value
        self.variable("test_memory").value = space.memory.ctypes.data
        self._function("load_b").argtypes = [_P, _P, _P, _D, _D, _U, _U]
        self._function("test_buffer").argtypes = [
            _P, _P, ctypes.c_size_t, _P, ctypes.c_size_t, EXCHANGE
        ]
        size = self._function("test_bytes")
        size.restype = ctypes.c_size_t
        self.core = ctypes.create_string_buffer(size())
        self.buffers(1 << 15, 1 << 15)

    def buffers(self, commands, results):
        """Memory for what is packed, so many bytes of it."""
        self._kept += [packed := self.room((commands,), np.uint8)]
        self._kept += [words := self.room((results,), np.uint8)]
        self._function("test_buffer")(
            self.core, packed.ctypes.data, commands, words.ctypes.data, results, self._kept[2]
        )

    def room(self, shape, dtype, skew=0):
        """An array in the memory that the core sees, ``skew`` bytes off the next 64."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        start = -(-self.taken // 64) * 64 + skew
        self.taken = start + size
        assert self.taken <= len(self.space.memory)
        return self.space.memory[start : start + size].view(dtype).reshape(shape)

    def put(self, array, order="C", skew=0):
        """A copy of ``array`` there; with order F its columns lie side by side."""
        place = self.room(array.shape[::-1] if order == "F" else array.shape, array.dtype, skew)
        place = place.T if order == "F" else place
        place[...] = array
        return place

    def call(self, name, *arguments):
        """A function of the driver, by its name in a driver of prefix ``weft``, for this core."""
        return self._function(name.removeprefix("weft_"))(self.core, *arguments)

    def variable(self, name):
        """A pointer in the driver's library, by its name without the prefix."""
        return _P.in_dll(self.lib, f"{self.prefix}_{name}")

    def _function(self, name):
        return getattr(self.lib, f"{self.prefix}_{name}")

    def product(self, a, b, c, *, n=None, finish=0, columns=None, bias=None, weights=None):
        """``weft_product`` of arrays; ``b`` is None with weights."""
        given = Product(
            m=a.shape[0], n=c.shape[1], k=a.shape[1], a=a.ctypes.data, a_row=a.strides[0],
            a_k=a.strides[1], c=c.ctypes.data, c_row=c.strides[0], finish=int(finish),
        )
        if b is not None:
            given.b, (given.b_k, given.b_col) = b.ctypes.data, b.strides
        if weights is not None:
            given.weights = ctypes.pointer(weights)
        for name, array in (("columns", columns), ("bias", bias)):
            if array is not None:
                setattr(given, name, array.ctypes.data)
        return given

    def _exchange(self, core, commands, size, results, result_size, status):
        words, ended = self.space.exchange(ctypes.string_at(commands, size), result_size)
        assert len(words) <= result_size
        ctypes.memmove(results, words, len(words)) if words else None
        status[0] = ended
        return 0


def compiler():
    """The command of the C compiler: ``$CC``, or else ``cc``, or ``gcc``.

    Raises RuntimeError where there is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    found = [chosen] if chosen else [[name] for name in ("cc", "gcc")]
    for command in found:
        if shutil.which(command[0]):
            return command
    names = " or ".join(command[0] for command in found)
    raise RuntimeError(
        f"no C compiler found: {names} must be on PATH; install one, or set CC to its command"
    )


def compiled(sources, hooks, folder):
    """The library made of the driver's ``sources``, whose registers are those of ``hooks``.

    Raises RuntimeError with what the compiler said.
    """
    library = Path(folder) / "weft_driver.so"
    places = sorted({f"-I{Path(source).parent}" for source in sources})
    command = [*compiler(), *FLAGS, *places, "-shared", "-fPIC", "-include", str(hooks)]
    command += [*map(str, sources), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(f"the driver must compile, and does not: {done.stderr}")
    return library
