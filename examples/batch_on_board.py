"""A batch over a simulated board, through its serial port: python examples/batch_on_board.py

The board is the whole accelerator with its serial link, simulated clock by clock. Replace the
transport by "/dev/ttyUSB1" and the same program runs on a real board.
"""

import numpy as np

from weft import Accelerator, Config
from weft.sim.transport import SimBoardTransport

config = Config(rows=2, cols=2, a_words=64, b_words=64, requantize="tflite")
rng = np.random.default_rng(1)
weights = rng.integers(-128, 128, (8, 4), dtype=np.int8)
batch = rng.integers(-128, 128, (5, 3, 8), dtype=np.int8)  # 5 matrices of 3 x 8

with Accelerator(SimBoardTransport(config)) as acc:
    with acc.load(weights) as resident:  # sent once
        products = [acc.matmul(x, resident) for x in batch]

assert np.array_equal(products, batch.astype(int) @ weights)
print(f"{len(batch)} products over the serial port, each equal to NumPy's")
