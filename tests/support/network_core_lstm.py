"""Random steps of an LSTM on a network core, with their results by the kernel of TFLite Micro."""

import contextlib
from dataclasses import dataclass

import numpy as np

from weft.models.kernels.fixed_point import multiplier_of
from weft.models.kernels.recurrent import RECURRENT
from weft.models.network_core.operators.lstm import table_of
from weft.network_core.descriptors import BANK_BITS, ListJob, split

__all__ = ["LstmStep", "lstm_job", "random_step", "step_of"]


@dataclass(frozen=True, eq=False)
class LstmStep:
    """The sums and the cell of a step, and its results.

    Attributes
    ----------
    fed, own : int32 [units, 4]
    cell, new_cell : int16 [units]
    hidden : int8 [units]
    table : int32 [LSTM_WORDS]
        Words of the ADD table.
    zero : int
    """

    fed: np.ndarray
    own: np.ndarray
    cell: np.ndarray
    new_cell: np.ndarray
    hidden: np.ndarray
    table: np.ndarray
    zero: int

    def words(self, config) -> np.ndarray:
        """The words of the ADD table as the memory has them, uint8 [words, bytes]."""
        words = np.zeros((len(self.table), config.add_table_vectors * config.array.depth), np.uint8)
        words[:, :4] = self.table.astype("<i4").reshape(-1, 1).view(np.uint8)
        return words


def random_step(rng, units, limit=None) -> LstmStep:
    """A step with sums of all sizes; the cell has any limit without one."""
    size = rng.choice([20, 200, 3000, 60_000, 1 << 30], (2, units, 4))
    fed, own = (rng.uniform(-1, 1, size.shape) * size).astype(np.int32)
    cell = rng.integers(-(1 << 15), 1 << 15, units).astype(np.int16)
    return step_of(
        fed, own, cell, zero=int(rng.integers(-128, 128)), power=-int(rng.integers(9, 16)),
        limit=int(rng.choice([0, 32767, 20480, 500]) if limit is None else limit),
        scales=np.exp2(rng.uniform(-6, 3, 8)), hidden=2.0 ** rng.uniform(-24, -21),
    )


def step_of(fed, own, cell, *, zero=0, power=-11, limit=0, scales=None, hidden=2**-23) -> LstmStep:
    """A step with these sums; ``scales`` are those of the gates, of the inputs first."""
    scales = np.ones(8) if scales is None else scales
    given = {
        "tflite": {
            "input_scales": tuple(map(multiplier_of, scales[:4])),
            "recurrent_scales": tuple(map(multiplier_of, scales[4:])),
            "forget_scale": multiplier_of(2**-15),
            "update_scale": multiplier_of(2.0 ** (-30 - power)),
            "hidden_scale": multiplier_of(hidden),
        },
        "cell_power": power, "limit": limit, "hidden_zero": zero, "wide": False, "time_major": True,
    }
    units, state = len(cell), {}
    state["lstm"] = np.full((1, units), zero, np.int8), cell[None].astype(np.int64)
    run = RECURRENT["tflite.lstm"]([fed.T.reshape(1, 1, -1)], given, state, "tflite")
    next(run)
    with contextlib.suppress(StopIteration):
        run.send(own.T.reshape(1, -1).astype(np.int64))
    after, new = state["lstm"]
    return LstmStep(
        fed, own, cell, new[0].astype(np.int16), after[0].astype(np.int8), table_of(given), zero
    )


def lstm_job(config, step, places, loads=0) -> ListJob:
    """The job of a step; ``places`` are the vectors of both sums, of the cell, and of the output.
    """
    fed, own, cell, output = places
    # Fields without an effect: a convolution with them would read beyond the memory.
    beyond = config.words << BANK_BITS
    return ListJob(
        lstm=1, loads=loads, panel_rows=1, out_height=1, out_width=1, columns=len(step.cell),
        tile_words=9999, kernel_height=2, kernel_width=2, tap_vectors=99, group_tiles=1,
        in_height=2, in_width=2, dilation_y=1, dilation_x=1, tap_x_step=beyond, tap_y_step=beyond,
        group_step=beyond, low=3, high=-3, zero=step.zero, input=split(fed, config.banks),
        add_input=split(own, config.banks), add_pixel_step=split(cell - own, config.banks),
        output=split(output, config.banks),
    )
