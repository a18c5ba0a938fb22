"""The latencies of a language core in cycles: data for the hardware and for the cycle model."""

from weft.latencies import DSP_MULTIPLIER, MEMORY_READ

__all__ = [
    "ARRIVED", "COIN_BITS", "CONTROL", "DECODED", "EVERY_OTHER", "FOLLOW", "GROUP_OF_PRODUCT",
    "GROUP_OF_VALUE", "LANES_OUT", "LIST_END", "LIST_START", "MAXIMUM_OUT", "PARAMETER_ISSUE",
    "PORT_B", "READ", "REDUCED", "RING_WORDS", "SCALAR_OUT", "SELECTED", "SIDE_READ", "SKIPPED",
    "STORE_WORD", "TABLE_OUT", "TRANSFER_START", "TRANSFER_TIMEOUT", "TREE", "UNPACKED",
]

READ = 1 + MEMORY_READ  # from a step to its word and its vector: a register for the address
PORT_B = 1 + READ  # the same of port B of the main memory, with a register near its users

# Of the control.
CONTROL = 2  # from the end of a pass to the first step of the next one: its job, its start
DECODED = PORT_B + 2  # from the first step of a pass, at least: it is chosen, its job, its start
FOLLOW = 4  # from the last step of a pass to the first step of the next one, at least
LIST_START = PORT_B + 1 + CONTROL  # from the read of the first descriptor to the first step
LIST_END = -CONTROL  # no pass follows the last one
SKIPPED = LIST_END + 1  # a pass that is left out has been decoded
TREE = 2  # the sum of the products of a column
# From the last step of a tile to its first group, and from a step to its group of values.
GROUP_OF_PRODUCT = READ + DSP_MULTIPLIER + TREE + 1
GROUP_OF_VALUE = READ

# Stages of the lanes, from a group on.
SELECTED = PORT_B + 2  # from a parameter address to the parameters: two registers select 8 bytes
TABLE_OUT = 2 + MEMORY_READ + DSP_MULTIPLIER + 1  # group, index; base and slope; product; sum
PARAMETER_ISSUE = TABLE_OUT - SELECTED  # parameters come with the value of a table
LANES_OUT = TABLE_OUT + DSP_MULTIPLIER + 7  # sum, rounding, two shifts, clamp, residual, saturation
REDUCED = DSP_MULTIPLIER + 3  # from results to their squares and the sum of all; others are faster
COIN_BITS = 32  # a bit of a random number, and a step of its multiplication, in each cycle
MAXIMUM_OUT = 3  # from results until the maximum of their head can be read
SIDE_READ = TABLE_OUT - MEMORY_READ  # from a group to the address of its factors
EVERY_OTHER = 2  # steps of tiles of one word, and of keys and values, are so many cycles apart

# Of the program memory.
RING_WORDS = 8  # that are read ahead: the bursts of 2 or 3 hide the latency of an SDRAM
TRANSFER_START = DSP_MULTIPLIER + 3  # from the first step of a pass to the first burst
STORE_WORD = 3  # cycles of a word that is stored, beside its beats
ARRIVED = 2  # from the last beat of a word at port B until a step of port A may read it
UNPACKED = 2  # cycles of the last codes of a transfer in the unpacker: a register, two columns
TRANSFER_TIMEOUT = 1 << 16  # cycles in which an open burst must move

# From the first step of a scalar pass to its scale.
SCALAR_OUT = 1 + 1 + 3 + 1 + SELECTED + DSP_MULTIPLIER + 1
