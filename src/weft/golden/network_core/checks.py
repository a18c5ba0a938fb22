"""The rules for the fields of a descriptor, which the list reader checks."""

from weft.network_core.addresses import BANK_BITS, join
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, ListLoop, LoadTarget, places

__all__ = ["RESULT_BYTES", "begins_with_beat", "fits"]

RESULT_BYTES = 1024  # at most, of a result

_SIZES = {
    ListLoad: ("words",),
    ListJob: (
        "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
        "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
    ),
    ListLoop: ("times", "body"),
    ListEnd: (),
}


def begins_with_beat(config, address) -> bool:
    """Whether the vector at ``address`` is the first one of a beat of the program memory.

    True without a program memory. A step is right if all its vectors are multiples of a beat.
    """
    return not config.program_words or join(address, config.banks) % config.read_vectors == 0


def fits(config, descriptor) -> bool:
    """Whether the fields of a descriptor fit the core; otherwise the error is FIELD.

    Parameters
    ----------
    config : NetworkCoreConfig
    descriptor : ListLoad, ListJob, ListLoop or ListEnd
    """
    banks = (
        getattr(descriptor, place.name) % (1 << BANK_BITS)
        for place in places(type(descriptor)) if place.address
    )
    sizes = (getattr(descriptor, name) for name in _SIZES[type(descriptor)])
    return all(bank < config.banks for bank in banks) and all(sizes) and _limits(config, descriptor)


def _limits(config, descriptor):
    match descriptor:
        case ListLoad(source=source) if not begins_with_beat(config, source):
            return False
        case ListLoop():
            return begins_with_beat(config, descriptor.source_step)
        case ListLoad(target=LoadTarget.B, first_word=first, words=words):
            return first + words <= config.b_words
        case ListLoad(target=LoadTarget.PARAMETERS, first_word=first, words=words):
            return first + words <= config.lines
        case ListLoad(target=LoadTarget.ADD_TABLE, first_word=first, words=words):
            return first + words <= ADD_TABLE_WORDS
        case ListLoad():
            return False
        case ListJob():
            both = descriptor.add and descriptor.sums
            return descriptor.panel_rows <= config.array.rows and not both
        case ListEnd():
            return descriptor.result_bytes <= RESULT_BYTES
