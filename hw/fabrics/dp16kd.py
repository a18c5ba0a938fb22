"""DP16KD, the block RAM of the ECP5: the settings that all its uses share."""

from amaranth.hdl import ClockSignal, Const, Instance

__all__ = ["ADDRESS_BITS", "PORT_BITS", "dp16kd"]

ADDRESS_BITS = 14  # of a port; the address counts bits
PORT_BITS = 18  # data bits of a port
ALWAYS = Const(1)
_ROW_WORDS, _ROW_STEP = 16, 20  # words of 18 bits in an INITVAL, and bits from one to the next


def dp16kd(ports, *, width_a, width_b, read_en=ALWAYS, table=()):
    """A DP16KD with output registers.

    Parameters
    ----------
    ports : dict
        Addresses, data and write enables of its ports A and B, by the name of the Instance.
    width_a, width_b : int
        Width of the words of each port.
    read_en : Value, optional
        Clock enable of port B and of all output registers; 1 if absent.
    table : sequence of int
        The first words of 18 bits; the others start at 0.

    Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide: DP16KD. The order of the
    bits in INITVAL: as Yosys writes them.
    """
    ports = {**ports}
    for port, width, enable in (("A", width_a, ALWAYS), ("B", width_b, read_en)):
        ports |= {
            f"i_CLK{port}": ClockSignal(),
            f"i_CE{port}": enable,
            f"i_OCE{port}": read_en,
            f"i_RST{port}": Const(0),
            **{f"i_CS{port}{n}": Const(0) for n in range(3)},
            f"p_DATA_WIDTH_{port}": width,
            f"p_REGMODE_{port}": "OUTREG",
            f"p_CSDECODE_{port}": "0b000",
        }
    for row, first in enumerate(range(0, len(table), _ROW_WORDS)):
        words = table[first : first + _ROW_WORDS]
        value = sum(word << _ROW_STEP * n for n, word in enumerate(words))
        ports[f"p_INITVAL_{row:02X}"] = Const(value, _ROW_WORDS * _ROW_STEP)
    return Instance("DP16KD", p_RESETMODE="SYNC", p_GSR="DISABLED", **ports)
