"""The C driver of this kit, compiled for this machine and called from Python."""

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


class WeftWeights(ctypes.Structure):
    """The C struct ``weft_weights``."""

    _fields_ = [(name, _U) for name in ("n", "k", "page", "generation")]


class WeftProduct(ctypes.Structure):
    """The C struct ``weft_product``."""

    _fields_ = [
        ("m", _U), ("n", _U), ("k", _U),
        ("a", _P), ("a_row_stride", _D), ("a_k_stride", _D),
        ("b", _P), ("b_k_stride", _D), ("b_col_stride", _D),
        ("weights", ctypes.POINTER(WeftWeights)), ("c", _P), ("c_row_stride", _D),
        ("epilogue", ctypes.c_uint), ("columns", _P), ("bias", _P),
    ]


class Library:
    """A compiled driver of any kind of core, connected to one device.

    Parameters
    ----------
    library : path
        The shared library.
    device : object
        The core, real or simulated. It has the methods ``read(address)`` and
        ``write(address, value)``.
    prefix : str
        The prefix of the driver's names.
    """

    def __init__(self, library, device, prefix="weft"):
        self.device, self.prefix = device, prefix
        self.lib = ctypes.CDLL(str(library))
        # References to callbacks and buffers, which C code uses for as long as the driver lives.
        self._callbacks = [READ(device.read), WRITE(device.write)]
        for name, hook in zip(("read", "write"), self._callbacks, strict=True):
            self.variable(f"test_{name}").value = ctypes.cast(hook, _P).value
        size = self._function("test_core_size")
        size.restype = ctypes.c_size_t
        self.core = ctypes.create_string_buffer(size())

    def call(self, name, *arguments):
        """Call a function of the driver on this core; ``name`` has the prefix ``weft`` or none."""
        return self._function(name.removeprefix("weft_"))(self.core, *arguments)

    def variable(self, name):
        """A pointer variable of the library, by its name without the prefix."""
        return _P.in_dll(self.lib, f"{self.prefix}_{name}")

    def _function(self, name):
        return getattr(self.lib, f"{self.prefix}_{name}")


class Driver(Library):
    """The driver of a product core.

    Parameters
    ----------
    library, prefix
        As of `Library`; `compile_driver` returns the library.
    device : object
        It also has the method ``exchange(commands, result_bytes)``, which returns the bytes of a
        result packet and its status, and the attribute ``memory``, an array of bytes that the core
        can access.
    """

    Weights, DONE, READ = WeftWeights, DONE, READ  # for tests

    def __init__(self, library, device, prefix="weft"):
        super().__init__(library, device, prefix)
        self.used = 0  # bytes of memory that are allocated
        self._callbacks += [EXCHANGE(self._exchange)]
        self.variable("test_memory").value = device.memory.ctypes.data
        self._function("load_b").argtypes = [_P, _P, _P, _D, _D, _U, _U]
        self._function("test_buffers").argtypes = [
            _P, _P, ctypes.c_size_t, _P, ctypes.c_size_t, EXCHANGE
        ]
        self.buffers(1 << 15, 1 << 15)

    def buffers(self, commands, results):
        """Set the driver's buffers, with ``commands`` and ``results`` bytes."""
        self._callbacks += [packed := self.alloc((commands,), np.uint8)]
        self._callbacks += [words := self.alloc((results,), np.uint8)]
        self._function("test_buffers")(
            self.core, packed.ctypes.data, commands, words.ctypes.data, results, self._callbacks[2]
        )

    def alloc(self, shape, dtype, skew=0):
        """A new array in the device's memory, at a multiple of 64 bytes plus ``skew``."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        start = -(-self.used // 64) * 64 + skew
        self.used = start + size
        assert self.used <= len(self.device.memory)
        return self.device.memory[start : start + size].view(dtype).reshape(shape)

    def put(self, array, order="C", skew=0):
        """A copy of ``array`` in the device's memory, row-major (C) or column-major (F)."""
        copy = self.alloc(array.shape[::-1] if order == "F" else array.shape, array.dtype, skew)
        copy = copy.T if order == "F" else copy
        copy[...] = array
        return copy

    def product(self, a, b, c, *, epilogue=0, columns=None, bias=None, weights=None):
        """``weft_product`` for arrays; with weights ``b`` is None."""
        p = WeftProduct(
            m=a.shape[0], n=c.shape[1], k=a.shape[1], a=a.ctypes.data, a_row_stride=a.strides[0],
            a_k_stride=a.strides[1], c=c.ctypes.data, c_row_stride=c.strides[0],
            epilogue=int(epilogue),
        )
        if b is not None:
            p.b, (p.b_k_stride, p.b_col_stride) = b.ctypes.data, b.strides
        if weights is not None:
            p.weights = ctypes.pointer(weights)
        for name, array in (("columns", columns), ("bias", bias)):
            if array is not None:
                setattr(p, name, array.ctypes.data)
        return p

    def _exchange(self, core, commands, size, results, result_size, status):
        data, job_status = self.device.exchange(ctypes.string_at(commands, size), result_size)
        assert len(data) <= result_size
        ctypes.memmove(results, data, len(data)) if data else None
        status[0] = job_status
        return 0


def compiler():
    """The command of the C compiler: ``$CC`` if it is set, otherwise ``cc`` or ``gcc``.

    Raises RuntimeError if no compiler is on PATH.
    """
    configured = shlex.split(os.environ.get("CC", ""))
    candidates = [configured] if configured else [[name] for name in ("cc", "gcc")]
    for command in candidates:
        if shutil.which(command[0]):
            return command
    names = " or ".join(command[0] for command in candidates)
    raise RuntimeError(
        f"no C compiler found: {names} must be on PATH; install one, or set CC to its command"
    )


def compile_driver(sources, hooks, folder):
    """Compile the driver's ``sources``, with the header ``hooks``, into a shared library.

    Raises RuntimeError with the compiler's messages if it reports anything.
    """
    library = Path(folder) / "weft_driver.so"
    includes = sorted({f"-I{Path(source).parent}" for source in sources})
    command = [*compiler(), *FLAGS, *includes, "-shared", "-fPIC", "-include", str(hooks)]
    command += [*map(str, sources), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(f"the driver does not compile without warnings: {done.stderr}")
    return library
