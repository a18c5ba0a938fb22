"""The cycle model of lists: the cycles of each job on a network core, exactly.

The model computes times, not data. A job without ADD depends on its start only: `PlainLayer` has a
closed rule for each of its chunks. The reads of the side port depend on each other, and on the
banks that stores write in the same cycle. So the parts that use it are followed cycle by cycle:

====================  =====================================  ===============================
part                  hardware                               module
====================  =====================================  ===============================
tiles of a job        map reader, step sequencer             `weft.network_core.cycles.tiles`
chunks of a job       array section, output section          `weft.network_core.cycles.output`
loads                 list loader                            `weft.network_core.cycles.heads`
heads, descriptors    list reader                            `weft.network_core.cycles.heads`
reads                 read arbiter, side port of the memory  `weft.network_core.cycles.memory`
SOFTMAX               unit of the output section             `weft.network_core.cycles.softmax`
LSTM                  unit of the output section             `weft.network_core.cycles.lstm`
program memory        reads and stores over AXI4             `weft.network_core.cycles.memory`
list, log             list execution, job log                `weft.network_core.cycles.model`
====================  =====================================  ===============================

A `weft.hw.network_core.micro.core.MicroCore` has another model, `weft.network_core.cycles.micro`.
It executes the microprogram, and has a closed rule for each tile:

====================  =====================================  ===============================
list, log, jobs       micro engine                           `weft.network_core.cycles.micro`
tiles, loads          step, output and load unit             `weft.network_core.cycles.micro`
====================  =====================================  ===============================
"""

from weft.network_core.cycles.lstm import lstm_cycles
from weft.network_core.cycles.memory import ProgramTiming
from weft.network_core.cycles.micro import ListPrediction
from weft.network_core.cycles.model import predict_list
from weft.network_core.cycles.softmax import softmax_cycles

__all__ = ["ListPrediction", "ProgramTiming", "lstm_cycles", "predict_list", "softmax_cycles"]
