"""The layouts that the blocks of a network core share: addresses, jobs, loads."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Signal, signed
from amaranth.lib import data
from amaranth.utils import ceil_log2

from weft.network_core.descriptors import BANK_BITS, ListJob, ListLoad, places

__all__ = [
    "ColumnParameters", "ComputedTile", "JobFields", "ListLoadFields", "MapChunk", "VectorAddress",
    "add_addresses", "add_vectors", "bank_bias", "beat_place", "in_memory", "is_of_unit",
    "later_sum", "region_of", "vector_number", "within", "writable",
]


class VectorAddress(data.StructLayout):
    """An address, or a step: the vector in ``bank`` at ``word``.

    ``word`` has one bit more than the words of a bank need, of the larger memory if there are two.
    It wraps: a step back is a large word.
    """

    def __init__(self, config):
        super().__init__({
            "bank": range(config.banks),
            "word": ceil_log2(config.address_words) + 1,
        })

    def from_list(self, value):
        """The address in an address field of a descriptor (32 bits)."""
        bank, word = self["bank"].width, self["word"].width
        return {"bank": value[:bank], "word": value[BANK_BITS : BANK_BITS + word]}


class JobFields(data.StructLayout):
    """The fields of the running `weft.network_core.descriptors.ListJob`.

    Addresses are `VectorAddress`, all other fields have their widths. Only the fields that the core
    knows are there.
    """

    def __init__(self, config):
        super().__init__(_members(config, ListJob))


def is_of_unit(config, fields):
    """Whether a job is of a unit of the output section: it has no steps, and the unit the scaler.

    ``fields`` are its `JobFields`, or a dict of them.
    """
    flags = [fields[name] for name in ("softmax", "lstm") if getattr(config, name)]
    return reduce(or_, flags) if flags else Const(0)


class ListLoadFields(data.StructLayout):
    """The fields of a `weft.network_core.descriptors.ListLoad`, with widths as in `JobFields`."""

    def __init__(self, config):
        super().__init__(_members(config, ListLoad))


def _members(config, kind):
    """The shapes of all fields of a class of descriptors, by name."""
    address = VectorAddress(config)
    return {
        place.name: address if place.address
        else signed(place.bits) if place.signed else place.bits
        for place in places(kind, config)
    }


class ComputedTile(data.StructLayout):
    """A tile that the sequencer announces in the cycle of its last step.

    ============= =================================================================================
    ``valid``     a tile is announced in this cycle
    ``rows``      rows that are pixels of its panel, 1..``rows``
    ``cols``      columns that are channels of the output map, 1..``cols``
    ``line``      parameter line of the first chunk of its rows
    ``tile_last`` the tile is the last one of its panel
    ``last``      the tile is the last one of its job
    ============= =================================================================================
    """

    def __init__(self, config):
        super().__init__({
            "valid": 1,
            "rows": range(config.array.rows + 1),
            "cols": range(config.array.cols + 1),
            "line": range(config.lines),
            "tile_last": 1,
            "last": 1,
        })


class MapChunk(data.StructLayout):
    """A chunk: up to ``lanes`` neighbouring results of a pixel.

    ============== ================================================================================
    ``index``      the position of the chunk in its row of the tile
    ``line``       parameter line of its columns
    ``lane_last``  the last lane with a result
    ``row_end``    the chunk is the last one of its row of the tile
    ``tile_end``   the chunk is the last one of its tile
    ``panel_end``  the chunk is the last one of its panel
    ``last``       the chunk is the last one of its job
    ============== ================================================================================

    With the option ``two_rows``, ``index`` tells which of both rows of the array it is, and
    ``pair_end`` that the chunk is the last one of its row of the result buffer.
    """

    def __init__(self, config):
        super().__init__({
            "index": range(max(config.row_chunks, config.drained_rows)),
            "line": range(config.lines),
            "lane_last": range(config.array.lanes),
            "row_end": 1,
            "tile_end": 1,
            "panel_end": 1,
            "last": 1,
            **({"pair_end": 1} if config.two_rows else {}),
        })


class ColumnParameters(data.Struct):
    """The parameters of a column, as in a parameter line: its lane n has bytes 9n to 9n + 8."""

    bias: signed(32)
    multiplier: 32
    shift: signed(8)


def bank_bias(banks):
    """``bank + other + bias`` carries out of the bits of a bank if ``bank + other >= banks``."""
    return (1 << ceil_log2(banks)) - banks


def add_addresses(m, a, b, banks, name):
    """``a + b`` of two `VectorAddress`, combinationally: bank and word in one carry chain.

    A bit between them lets a carry pass, and tells it.
    """
    bias, bits = bank_bias(banks), len(b.bank)
    biased, total = Signal(bits, name=f"{name}_biased"), Signal.like(a, name=name)
    chain = Signal(bits + 1 + len(a.word), name=f"{name}_chain")
    m.d.comb += [
        biased.eq(b.bank + bias),
        chain.eq(Cat(a.bank, Const(1, 1), a.word) + Cat(biased, Const(0, 1), b.word)),
        total.word.eq(chain[bits + 1 :]),
        # Without a carry the sum still has the bias.
        total.bank.eq(Mux(chain[bits], chain[:bits] - bias, chain[:bits])),
    ]
    return total


def later_sum(m, a, b, banks, name):
    """``a + b`` of two `VectorAddress`, 2 cycles later: the carry from bank to word is the second.

    With one bank it is valid a cycle later, and in the second one, if ``a`` and ``b`` stay.
    """
    total = Signal.like(a, name=name, reset_less=True)
    if banks == 1:
        m.d.sync += total.word.eq(a.word + b.word)
        return total
    raw = Signal(range(2 * banks), name=f"{name}_bank", reset_less=True)
    word = Signal.like(a.word, name=f"{name}_word", reset_less=True)
    m.d.sync += [
        raw.eq(a.bank + b.bank), word.eq(a.word + b.word),
        total.bank.eq(raw - Mux(raw >= banks, banks, 0)), total.word.eq(word + (raw >= banks)),
    ]
    return total


def add_vectors(m, address, vectors, banks, name):
    """``address + vectors``, combinationally: the next bank and the carry need no sum.

    ``vectors`` is an integer, and negative for a step back. A bank that does not exist stays.
    """
    total, carry = Signal.like(address, name=name), Signal(name=f"{name}_carry")
    words, step = divmod(vectors, banks)
    m.d.comb += [total.bank.eq(address.bank), total.word.eq(address.word + words + carry)]
    if step:
        with m.Switch(address.bank):
            for bank in range(banks):
                with m.Case(bank):
                    m.d.comb += [
                        total.bank.eq((bank + step) % banks), carry.eq((bank + step) // banks),
                    ]
    return total


def beat_place(config, address):
    """The low bits of a vector's number: its place in a beat of the program memory.

    ``address`` is a `VectorAddress`. The place is 0 where reads of several vectors may begin.
    """
    low = ceil_log2(config.read_vectors)
    return (address.word[:low] * (config.banks % config.read_vectors) + address.bank)[:low]


def vector_number(config, address):
    """The number of the vector at a `VectorAddress`: ``word * banks + bank``, without a multiplier.
    """
    shifts = (bit for bit in range(config.banks.bit_length()) if config.banks >> bit & 1)
    return sum((address.word << bit for bit in shifts), address.bank)


def in_memory(config, address, words=None):
    """Whether a memory has the vector at ``address``, a `VectorAddress`.

    ``words`` are those of each of its banks, by default of the memory on the chip.
    """
    words = config.words if words is None else words
    return (address.bank < config.banks) & ~address.word[ceil_log2(words) :].any()


def writable(config, address):
    """Whether the host may write the vector at ``address``: of the memory on the chip.

    With ``resident``, of the memories of weights, parameters and the ADD table, too.
    """
    if not config.resident:
        return in_memory(config, address)
    place, region = region_of(config, address)
    inside = Cat((region == n) & (place < size) for n, size in enumerate(config.regions))
    return inside.any() & ~address.word[-1]


def region_of(config, address):
    """The place of a vector in its region, and the region; with ``resident``."""
    bits = ceil_log2(config.region)
    return address.word[:bits], address.word[bits : bits + ceil_log2(len(config.regions))]


def within(config, address, vectors, base, limit):
    """1 if the vector at ``address`` and the following ones, ``vectors`` in all, may be used.

    ``base`` and ``limit`` are the first word that may be used, and the first one beyond.
    """
    higher, extra = divmod(vectors - 1, config.banks)  # the last vector: its word, its bank
    below = address.word < limit - higher
    if extra:  # beyond the last bank it lies one word higher
        beyond = address.bank >= config.banks - extra
        below &= (address.word < limit - (higher + 1)) | ~beyond
    return (address.word >= base) & below
