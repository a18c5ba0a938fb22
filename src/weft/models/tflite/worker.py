"""A process of its own that runs models in TFLite Micro, as it may crash or never end.

It is run as a script, and reads requests from its standard input, each a sequence of arrays: an
array of numbers, then data. Its answers have the same form.

=========  ==========================================  ============================
request    numbers; data                               answer
=========  ==========================================  ============================
``OPEN``   ``[0, id, bytes of memory]``; model         status
``RUN``    ``[1, id, inputs, outputs]``; inputs        status; outputs, if it is 0
``CLOSE``  ``[2, id]``                                 none
=========  ==========================================  ============================

A status is 0, or 1 followed by a text.
"""

import io
import os
import struct
import sys

import numpy as np

__all__ = ["CLOSE", "OPEN", "RUN", "receive", "send"]

OPEN, RUN, CLOSE = range(3)


def send(stream, *arrays):
    """Write arrays, each as its length in 8 bytes and a file of numpy's."""
    for array in arrays:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
        stream.write(struct.pack("<Q", file.tell()) + file.getbuffer())
    stream.flush()


def receive(stream):
    """Read one array; EOFError at the end."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError("the stream ended")
    [size] = struct.unpack("<Q", head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the stream ended")
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def _text(text):
    return np.frombuffer(text.encode() or b" ", np.uint8)


def main():
    """Answer requests until the input ends."""
    from tflite_micro import runtime

    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of the runtime goes to the log
    interpreters = {}
    while True:
        try:
            request, identity, *numbers = receive(source).tolist()
        except EOFError:
            return
        if request == CLOSE:
            interpreters.pop(identity, None)
            continue
        data = [receive(source) for _ in range(1 if request == OPEN else numbers[0])]
        try:
            if request == OPEN:
                interpreters[identity] = runtime.Interpreter.from_bytes(
                    data[0].tobytes(), arena_size=numbers[0]
                )
                answer = []
            else:
                interpreter = interpreters[identity]
                for place, value in enumerate(data):
                    interpreter.set_input(value, place)
                interpreter.invoke()
                answer = [interpreter.get_output(place) for place in range(numbers[1])]
        except (RuntimeError, ValueError, MemoryError) as error:
            send(sink, np.int64(1), _text(str(error)))
        else:
            send(sink, np.int64(0), *answer)


if __name__ == "__main__":
    main()
