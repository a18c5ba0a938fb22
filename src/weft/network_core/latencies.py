"""The latencies of the blocks of a network core: data for hardware and cycle model."""

from weft import latencies
from weft.config import Config
from weft.network_core.config import NetworkCoreConfig, has_single_port

__all__ = [
    "CHUNK_ADDRESS", "CHUNK_START", "CHUNK_STORE", "DELIVERY", "LIST_SETTLE", "LSTM_FUNCTION",
    "MAP_PRODUCT", "OPERANDS", "PANEL_START", "PROGRAM_BEATS", "ROW_READ", "SIDE_READ",
    "SOFTMAX_STEPS", "SOFTMAX_ZEROS", "SUM_PARTS", "WRITE", "add_slot", "added_chunks",
    "added_take", "array_write", "chunks_in_flight", "ends_early", "has_serial_scaler", "is_skewed",
    "is_spread", "join", "lead", "map_read", "read_delay", "rescale", "rescale_total",
    "result_read", "result_rows", "row_address", "scale", "softmax_reciprocal", "starts_steps",
    "store_sums", "sum_latency", "sums", "total_latency", "waiting_chunks",
]

LIST_SETTLE = 7  # cycles without an event, until no event can follow in a list
PANEL_START = 3  # from the start of a job to its first step, beside the pixels of the panel
WRITE = 1  # from a write of a client to the memory
PARAMETER_READ = 1 + latencies.MEMORY_READ  # from an issue to the parameters of its columns
CHUNK_START = 3  # from an announced tile to its first chunk
CHUNK_ADDRESS = 3  # from a chunk to its checked address
CHUNK_STORE = 1 + CHUNK_ADDRESS  # from a chunk at the map store to its write
PROGRAM_BEATS = 64  # of the program memory that wait for their data, beside 2 that leave
OPERANDS = 1  # from a step to its operands, in a core with a microprogram
SUM_PARTS = 4  # writes of a chunk of sums at most, one a slot
ROW_READ = 2 + latencies.MEMORY_READ + 1  # from the address of a row to its vector
SIDE_READ = ROW_READ + 1  # from a read that the memory accepts to its vectors
DELIVERY = 1  # from the memory to the client of a read
SOFTMAX_ZEROS = 11  # of a total of 31 bits, at most: the term of its largest value alone is 2^19
SOFTMAX_STEPS = 7  # products of a reciprocal: an estimate, and three times an error, an estimate
MAP_PRODUCT = latencies.DSP_MULTIPLIER - 1  # of two words of the ADD table
LSTM_FUNCTION = 4 + latencies.MEMORY_READ + MAP_PRODUCT  # of a gate or a cell
_ADDED_ADDRESS = 15  # from a chunk to the read of its added values, at the best


def lead(config: NetworkCoreConfig) -> int:
    """Cycles that a job may start before the cycle after the last store of the job before.

    With one row, layers of a network have few steps, so these cycles count. The first step still
    reads after that store. A core with a microprogram has no such start. A core with the option
    ``early`` has a better one.
    """
    return CHUNK_ADDRESS if config.array.rows == 1 and not config.early else 0


def starts_steps(config: NetworkCoreConfig) -> bool:
    """Whether the steps of a job have a start of their own, before the start of its output."""
    return config.early or lead(config) > 0


def is_spread(config: NetworkCoreConfig) -> bool:
    """Whether the core has registers for the long wires of a large array.

    The blocks of a core with many rows lie far from each other. So the rows read a copy of the
    offset of a step, and the added map has a register stage before it. The registers take cycles of
    each job, so only cores have them whose jobs start early and win more.
    """
    return config.early and config.array.rows >= 8


def row_address(config: NetworkCoreConfig) -> int:
    """From a step to the checked addresses of its rows of A.

    A cycle computes and compares them. A core that `is_spread` has copies of the step and of the
    offset, and a cycle more for the choice.
    """
    return 1 + 3 * is_spread(config)


def map_read(config: NetworkCoreConfig) -> int:
    """From a step to its vectors of A."""
    return row_address(config) + ROW_READ + 1


def array_write(config: NetworkCoreConfig) -> int:
    """From the last step of a tile to its first row in the result buffer."""
    array = config.array
    to_edge = map_read(config) + array.family.edge_registers
    drain = to_edge + array.cell.latency_of(array.depth) + 1 + (array.rows - 1) // array.hop
    return drain + (array.cols - 1 + array.cell.corrected) // array.hop


def result_read(array: Config) -> int:
    """From a read of the result buffer to the sums of a chunk; a whole row needs no selection."""
    if array.lanes == array.cols:
        return latencies.MEMORY_READ + 1 if array.family.pipelines_results else 1
    return array.family.result_read_latency


def sum_latency(array: Config) -> int:
    """From a read of the result buffer to the corrected sums of a chunk."""
    return result_read(array) + array.cell.corrected


def join(array: Config) -> int:
    """From an issue to the stage in which values and parameters meet.

    A core with a microprogram has no result buffer: its sums are there when the parameters come.
    """
    return PARAMETER_READ if has_single_port(array) else max(sum_latency(array), PARAMETER_READ)


def read_delay(array: Config) -> int:
    """From the request of a chunk to its read of the result buffer."""
    return join(array) - sum_latency(array)


def has_serial_scaler(array: Config) -> bool:
    """Whether the lanes scale digit by digit: logic cells are scarce, and a slot is long enough."""
    return (
        array.family.serial_epilogue and array.requantize == "tflite" and array.scale_cycles >= 4
    )


def scale(array: Config) -> int:
    """From the start of a scaler to its result."""
    if has_serial_scaler(array):
        return latencies.serial_scaler(array.scale_cycles)
    return latencies.scaler(array.requantize, array.scale_cycles)


def softmax_reciprocal(array: Config) -> int:
    """From the start of a reciprocal to its last cycle."""
    return SOFTMAX_ZEROS + 1 + SOFTMAX_STEPS * (1 + scale(array))


def _scaled(config):
    """From an issue to the value that is clamped to 8 bits.

    The bias takes 1 cycle, if it has no digits. With ``int16`` the sum of several columns takes
    another one, and so do the limits of the result.
    """
    array = config.array
    return join(array) + (not has_serial_scaler(array)) + 2 * config.int16 + scale(array)


def rescale(config: NetworkCoreConfig) -> int:
    """From the request of a chunk to the results of its layer."""
    return _scaled(config) + latencies.CLAMP


def rescale_total(config: NetworkCoreConfig) -> int:
    """From the request of a chunk with ADD to its results."""
    return add_slot(config) * config.array.scale_cycles + rescale(config)


def store_sums(array: Config) -> int:
    """From the request of a chunk to the write of the first part of its sums."""
    return join(array) + CHUNK_STORE


def is_skewed(array: Config) -> bool:
    """Whether the upper half of a vector comes later to the array of a core with a microprogram.

    In DSP blocks, it is a cycle later, so the adders of the blocks can add one after the other.
    """
    return array.family.has_dsp


def sums(array: Config) -> int:
    """From the operands of a step to the sums of the columns, in a core with a microprogram."""
    return latencies.ICE40_SKEWED_QUAD if is_skewed(array) else array.cell.latency_of(array.depth)


def ends_early(array: Config) -> bool:
    """Whether a tile of a core with a microprogram may end before the one before was taken.

    Its last step may come a cycle after the request of the last column but one of that tile: its
    sums come when the last column has been taken.
    """
    return array.scale_cycles - 1 + join(array) <= OPERANDS + sums(array)


def added_take(config: NetworkCoreConfig) -> int:
    """From the request of a chunk to its added values, which follow its result in the table."""
    return rescale(config) + 1


def total_latency(config: NetworkCoreConfig) -> int:
    """From the request of a chunk with ADD to the sum, or product, of both values of the table."""
    read = added_take(config) + 1 + latencies.MEMORY_READ
    return read + (MAP_PRODUCT if config.multiply_maps else 1)


def add_slot(config: NetworkCoreConfig) -> int:
    """The slot after its request in which the scalers take the total of a chunk with ADD.

    A slot has ``scale_cycles`` cycles, and a chunk is requested every 2 slots at most. The number
    is odd, so a slot never has two values.
    """
    array = config.array
    return -(-(total_latency(config) - join(array)) // array.scale_cycles) | 1


def chunks_in_flight(config: NetworkCoreConfig) -> int:
    """Chunks between their requests and their results."""
    cycles = config.array.scale_cycles
    plain, added = rescale(config), rescale_total(config)
    return 1 + max(-(-plain // cycles), -(-added // (2 * cycles)))


def added_chunks(config: NetworkCoreConfig) -> int:
    """Chunks of the added map between their reads and the scalers, at full rate."""
    read = _ADDED_ADDRESS + SIDE_READ + DELIVERY
    return 1 + -(-(added_take(config) + read) // (2 * config.array.scale_cycles))


def waiting_chunks(config: NetworkCoreConfig) -> int:
    """Chunks that wait for their request, at full rate: with ADD, for their added values."""
    return max(4, added_chunks(config) + is_spread(config))


def result_rows(config: NetworkCoreConfig) -> int:
    """Rows of the result buffer: enough for all tiles in flight at full rate; a power of two.

    Where logic cells are scarce it holds 2 tiles, so short tiles take more cycles.
    """
    array = config.array
    rows = config.tile_rows
    # Of short tiles.
    interval = max(rows, rows * config.row_chunks * array.scale_cycles)
    # From the decision on the last step of a tile to the free rows.
    occupied = latencies.STEP + array_write(config) + interval + read_delay(array) + 6
    tiles = 2 if array.family.serial_epilogue else -(-occupied // interval) + 1
    return 1 << (tiles * rows - 1).bit_length()
