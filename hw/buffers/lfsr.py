"""The places of a memory, one behind the other, without a carry."""

from amaranth.hdl import Cat

__all__ = ["TAPS", "lfsr_next"]

# Of so many bits: those whose exclusive nor, shifted in, leads through all values but one.
TAPS = {2: (0, 1), 3: (1, 2), 4: (2, 3), 5: (2, 4), 6: (4, 5), 7: (5, 6), 9: (4, 8)}


def lfsr_next(place):
    """What follows ``place``; 0 does, and all ones never, in the end.

    Which word goes to which place is all the same where words are read as they were written.

    Source: P. Alfke, Efficient Shift Registers, LFSR Counters, and Long Pseudo-Random Sequence
    Generators, Xilinx XAPP 052, 1996: the taps.
    """
    low, high = TAPS[len(place)]
    return Cat(~(place[low] ^ place[high]), place[:-1])
