"""Memory addresses in the order of an LFSR: a counter without a carry chain."""

from amaranth.hdl import Cat

__all__ = ["TAPS", "lfsr_next"]

# By width: the two bits whose XNOR is shifted in, for the longest sequence.
TAPS = {2: (0, 1), 3: (1, 2), 4: (2, 3), 5: (2, 4), 6: (4, 5), 7: (5, 6), 9: (4, 8)}


def lfsr_next(addr):
    """The LFSR state after ``addr``. The sequence visits every value except all ones.

    A FIFO may use any order of addresses, because it reads in the order in which it writes.

    Source: P. Alfke, Efficient Shift Registers, LFSR Counters, and Long Pseudo-Random Sequence
    Generators, Xilinx XAPP 052, 1996: the taps.
    """
    low, high = TAPS[len(addr)]
    return Cat(~(addr[low] ^ addr[high]), addr[:-1])
