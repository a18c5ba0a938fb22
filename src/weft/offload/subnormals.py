"""Arithmetic with subnormal numbers, in threads where the processor makes them 0.

XLA sets this mode of the processor for its programs, and calls back in it. There NumPy would round
operands, and the golden model would compute, with other numbers than the hardware.
"""

import ctypes
import sys

__all__ = ["KeptSubnormals"]

# The functions of C that read and set the modes of a thread (C11 7.6.4).
_c = ctypes.PyDLL("ucrtbase" if sys.platform == "win32" else None)
_Modes = ctypes.c_char * 256  # more than a `fenv_t` of any system
_PLAIN = _Modes()  # those of Python's own threads
_c.fegetenv(_PLAIN)


class KeptSubnormals:
    """Context with the modes of the thread that has imported this module; it takes microseconds."""

    def __enter__(self) -> None:
        self._before = _Modes()
        _c.fegetenv(self._before)
        _c.fesetenv(_PLAIN)

    def __exit__(self, *exception) -> None:
        _c.fesetenv(self._before)
