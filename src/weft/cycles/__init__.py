"""The cycle model: the cycles of a sequence of commands on a Config, exactly.

The model computes times, not data. It follows each command through three stages:

=======  =========================================================  ========================
stage    hardware                                                   module
=======  =========================================================  ========================
loader   command decoder, job table, loader                         `weft.cycles.model`
array    tile generator, tile gate, pass builder, sequencer, array  `weft.cycles.array`
output   result buffer to result stream                             `weft.cycles.output`
=======  =========================================================  ========================

Each stage keeps the times of its last few events: a command word taken, a pass started, a chunk
read. The time of the next event is the maximum of a few such times plus constant latencies
(`weft.timing`). A stage waits for another stage in four cases only, the *links*:

* loader to array: a tile waits for its job and its panels;
* array to output: a chunk waits until its row is in the result buffer;
* output to array: a pass waits for space in the result buffer;
* output to loader: a load, or a job for a full table, waits until earlier jobs have ended.

`weft.cycles.array` splits a job into tiles and passes. `weft.cycles.repetition` skips repeated
work: most passes, rows of tiles and jobs take the same cycles as the ones before.
"""

from weft.cycles.model import Prediction, predict

__all__ = ["Prediction", "predict"]
