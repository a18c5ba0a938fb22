"""The activation table of an int8 epilogue: any function of a result."""

from amaranth.hdl import Mux

from weft.hw.buffers.operands import OperandBuffer
from weft.hw.delay import pipeline

__all__ = ["look_up"]


def look_up(m, results, *, use_table, geometry, write):
    """The table entry of each result, `weft.latencies.TABLE` cycles later; each has a table.

    ``use_table`` is valid with the results. Without it a result is passed.
    """
    latency = OperandBuffer.LATENCY
    use_table = pipeline(m, use_table, latency, "use_table")
    outputs = []
    for n, result in enumerate(results):
        # Wide and a few lines deep: the tool may use distributed RAM.
        m.submodules[f"table_{n}"] = table = OperandBuffer(
            geometry=geometry, write=write.shape(), target="generic"
        )
        m.d.comb += [
            table.write.eq(write), table.read_en.eq(1), table.read_addr.eq(result[:8]),
        ]
        bypass = pipeline(m, result, latency, f"bypass_{n}")
        output = Mux(use_table, table.read_data[0][0], bypass).as_signed()
        outputs.append(pipeline(m, output, 1, f"output_{n}"))
    return outputs
