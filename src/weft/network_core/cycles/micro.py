"""The cycle model of lists for a core that a microprogram controls: it executes the program."""

import struct

from weft.network_core.addresses import join
from weft.network_core.cycles.micro_engine import EngineTimes
from weft.network_core.cycles.prediction import ListPrediction
from weft.network_core.descriptors import DESCRIPTOR_BYTES, ListError
from weft.network_core.states import NetworkState

__all__ = ["predict_micro"]

_VECTOR_BYTES = 4


def predict_micro(config, descriptors, list_address, log_address, limit, watch) -> ListPrediction:
    """Predict the cycles of a list, as `weft.network_core.cycles.predict_list`.

    Raises ValueError likewise, and if the list has an error.
    """
    data = b"".join(descriptor.pack() for descriptor in descriptors)
    vectors = struct.unpack(f"<{len(descriptors) * DESCRIPTOR_BYTES // _VECTOR_BYTES}I", data)
    first, log = (join(address, config.banks) for address in (list_address, log_address))
    engine = EngineTimes(config, vectors, first, log, watch)
    engine.run(limit)
    if engine.state is None:
        raise ValueError(f"a list must end in {limit} cycles")
    error = ListError(engine.state >> 8)
    if error == ListError.DEADLOCK:
        raise ValueError("loads and jobs of a list must not wait for each other")
    if engine.state != NetworkState.DONE:
        raise ValueError(f"a list must have no error, not {error.name}")
    return ListPrediction(
        tuple(zip(engine.starts, engine.ends, strict=True)), tuple(engine.computed),
        tuple(engine.loads), engine.now,
    )
