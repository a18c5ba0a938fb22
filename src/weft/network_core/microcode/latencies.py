"""The latencies of the micro engine and of its units, in cycles: data for the cycle model."""

__all__ = [
    "ADDED_READ", "CAPTURE", "DRAIN", "FIRST_INSTRUCTION", "JUMP", "LOAD_END", "LOAD_VECTOR",
    "READ", "SLOT", "STEP", "STORE", "SUMS", "TILE_START", "WRITE",
]

FIRST_INSTRUCTION = 2  # from the start of the list
JUMP = 1  # that a jump takes more than other instructions
READ = 2  # the same of a read of a vector
WRITE = 1  # the same of a write
LOAD_VECTOR = 2  # of a load, for each vector
LOAD_END = 1  # from the last write of a load to the end of its instruction

TILE_START = 2  # from the start of a tile to its first step
STEP = 2  # from a step to the next one
CAPTURE = 4  # from the last step of a tile to the cycle before its held sums
SLOT = 1  # from the start of a job to its first slot
SUMS = 1  # from the biased sums of a column to the output unit
STORE = 2  # from the last result of a tile to its store
DRAIN = 2  # from the last store of a job to the end of the instruction that waits for it
ADDED_READ = 2  # from the last byte of an added vector to the read of the next one
