"""Proof benches of the AXI4 master of a program memory: its reads, and its stores."""

from amaranth.hdl import Module

from verif.formal.axi import ReadRules, WriteRules
from verif.formal.bench import FormalBench
from verif.formal.master import AxiPins
from weft.config import Config
from weft.hw.dma.axi import BURST
from weft.hw.network_core.memory.program_memory import ProgramReads, ProgramStores
from weft.network_core.config import NetworkCoreConfig

__all__ = ["ProgramReadRules", "program_reads_bench", "program_stores_bench"]

CHIP = NetworkCoreConfig(
    array=Config(rows=1, cols=2, depth=2, lanes=1, requantize="tflite", activation="none"),
    words=16, read_vectors=2, program_words=16,
)
STORE_LIMIT = 4  # cycles in which a response may wait: the address is behind the data


class ProgramReadRules(ReadRules):
    """Reads of vectors: the rules of bursts, and of the end of a list. RREADY may wait."""

    PINS = ReadRules.PINS | {
        "halt": 1, "rdata": 8 * CHIP.beat_bytes,
        **{f"reads_{client}_{name}": 1 for client in range(2)
           for name in ("request_valid", "request_ready", "data_valid")},
    }
    RULES = {name: text for name, text in ReadRules.RULES.items() if name != "r_ready"} | {
        "halted": "while no list runs, no read of the program memory is accepted, and a cycle later"
                  " no data reach a client",
        "one_client": "the data of a read reach one client",
    }

    def elaborate(self, platform):
        m = Module()
        self._burst(m, "ar", self.after_reset(m))
        accepted = (
            self.reads_0_request_valid & self.reads_0_request_ready
            | self.reads_1_request_valid & self.reads_1_request_ready
        )
        data = self.reads_0_data_valid | self.reads_1_data_valid
        self.check(
            m, "halted", (~self.halt | ~accepted) & (~self.past(m, self.halt) | ~data)
        )
        self.check(m, "one_client", ~(self.reads_0_data_valid & self.reads_1_data_valid))
        self.cover(m, "read", self.rvalid & self.rready)
        return m


def program_reads_bench():
    """The bench of the reads. Its entries are cut: a beat may belong to any client."""
    rules = ProgramReadRules(data_bytes=CHIP.beat_bytes, beats=BURST)
    others = "reads", "base", "halt"
    pins = AxiPins(ProgramReads(CHIP), rules, {"ar": True, "r": False}, others)
    return FormalBench(pins, {"": rules})


def program_stores_bench():
    """The bench of the stores."""
    rules = WriteRules(data_bytes=CHIP.beat_bytes, beats=1, max_bursts=1, limit=STORE_LIMIT)
    pins = AxiPins(
        ProgramStores(CHIP), rules, {"aw": True, "w": True, "b": False}, ("writes", "base", "halt")
    )
    return FormalBench(pins, {"": rules})
