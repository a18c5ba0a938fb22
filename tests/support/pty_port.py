"""A serial port without hardware: a pty, with a function in a thread at its other end."""

import contextlib
import os
import threading
import tty

__all__ = ["Pty", "silent"]


class Pty:
    """A pty whose other end is served by ``serve(master)``, in a thread."""

    def __init__(self, serve):
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path, self.ended = os.ttyname(self.slave), threading.Event()
        self.thread = threading.Thread(target=self._run, args=(serve,), daemon=True)
        self.thread.start()

    def _run(self, serve):
        with contextlib.suppress(OSError):
            serve(self)

    def close(self):
        self.ended.set()
        for end in (self.slave, self.master):
            with contextlib.suppress(OSError):
                os.close(end)


def silent(pty):
    """Read all that comes, and answer nothing."""
    while os.read(pty.master, 4096):
        pass
