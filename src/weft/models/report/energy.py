"""An estimate of the energy of a step, from published energies of operations.

M. Horowitz, "Computing's energy problem (and what we can do about it)", ISSCC 2014, figure 1.1.9:
45 nm, 0.9 V. The estimate is for a chip of that technology, without clock tree, control and
leakage; an FPGA takes several times as much. It compares layers and Configs. It predicts no board.
"""

from dataclasses import dataclass, fields

from weft.config import Config
from weft.models.report.interface import Ceilings
from weft.models.report.streams import LayerStreams

__all__ = ["FORMULA", "Energy", "energy", "energy_text"]

INT_MAC_PJ = 0.2 + 0.1  # 8-bit multiplication, 32-bit addition
FLOAT_MAC_PJ = 1.1 + 0.9  # float16 multiplication, the nearest to bfloat16; float32 addition
# Bytes of a memory: energy of an access to 64 bits.
ACCESS_PJ = {8 << 10: 10.0, 32 << 10: 20.0, 1 << 20: 100.0}

FORMULA = (
    "energy = MAC x (multiplication + addition)"
    " + bytes written to and read from the operand buffers x energy of a byte"
    " + 2 x bytes of sums in the result buffer x energy of a byte."
    " Int8: 0.2 pJ a multiplication, 0.1 pJ a 32-bit addition."
    " Memory: 10, 20 or 100 pJ for 8 bytes, in a memory of up to 8 KB, 32 KB or 1 MB."
    " Source: M. Horowitz, ISSCC 2014 (45 nm, 0.9 V)."
)


@dataclass(frozen=True)
class Energy:
    """Estimated energy of a step in nJ; `FORMULA` has the formula.

    Attributes
    ----------
    mac : float
        Multiplications and additions.
    operands : float
        Writes and reads of the operand buffers.
    results : float
        Writes and reads of the result buffer.
    """

    mac: float = 0.0
    operands: float = 0.0
    results: float = 0.0

    @property
    def total(self) -> float:
        return self.mac + self.operands + self.results

    def __add__(self, other: "Energy") -> "Energy":
        return Energy(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Energy)))


def energy(
    config: Config, limits: Ceilings, moved: LayerStreams, macs: int, active: int, results: int
) -> Energy:
    """The estimated energy of a step in nJ.

    In each of the ``active`` cycles the array reads a word of A and a word of B. Loads write each
    word once. Each of the ``results`` sums is written to the result buffer and read from it.
    """
    kind = config.data_type
    mac = INT_MAC_PJ if kind.a.name.startswith("int") else FLOAT_MAC_PJ
    size = kind.a.bytes
    word_a, word_b = (edge * config.depth * size for edge in (config.rows, config.cols))
    operands = (moved.a + active * word_a) * _byte_pj(limits.a_bytes)
    operands += (moved.b + moved.parameters + active * word_b) * _byte_pj(limits.b_bytes)
    sums = 2 * results * kind.acc.bytes * _byte_pj(1)
    return Energy(macs * mac / 1e3, operands / 1e3, sums / 1e3)


def _byte_pj(size):
    """Energy of an access to a byte of a memory of ``size`` bytes, in pJ."""
    size = min(size, max(ACCESS_PJ))
    return ACCESS_PJ[min(limit for limit in ACCESS_PJ if size <= limit)] / 8


def energy_text(nanojoule: float) -> str:
    """An energy with the unit that fits it: ``12.3 nJ``, ``4.56 uJ``, ``1.2 mJ``."""
    for unit in ("nJ", "uJ"):
        if nanojoule < 1000:
            return f"{nanojoule:.3g} {unit}"
        nanojoule /= 1000
    return f"{nanojoule:,.3g} mJ"
