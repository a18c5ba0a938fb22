"""Words for people about a program that is too large for its core: why, and what to do."""

from weft.models.network_core.program import memory_needs
from weft.network_core.config import MAX_PROGRAM_WORDS, has_single_port

__all__ = ["TooLarge", "check_size", "way_out"]


class TooLarge(Exception):
    """The memory is too small; the text has the numbers.

    Attributes
    ----------
    needed, maps : int
        Bytes of the memory, and of the maps in it; 0 if another memory is too small.
    room : int
        Vectors for the maps of an inference, beside all else; below 0 if all else is too large.
    """

    def __init__(self, text, needed=0, maps=0, room=0):
        super().__init__(text)
        self.needed, self.maps, self.room = needed, maps, room


def check_size(areas, divided, plan, batch, config):
    """Raise TooLarge if the memory is too small for its areas."""
    needed, program_needed = memory_needs(areas, config)
    each = ", ".join(
        f"{name} {size:,}" for name, size in areas.items()
        if not config.program_words or name != "maps"
    )
    if needed > config.memory_bytes:
        what = "maps" if config.program_words else f"{each}; setup and maps share their place"
        raise TooLarge(
            f"the memory must have {needed:,} bytes ({what}), and"
            f" has {config.memory_bytes:,}: {config.size_text(config.words)}."
            f" {needed - config.memory_bytes:,} bytes are missing."
            f" {_largest_maps(divided, plan, batch, config)}",
            needed=needed, maps=areas["maps"],
            room=(config.memory_bytes - needed + areas["maps"]) // (config.array.depth * batch),
        )
    if program_needed > config.program_bytes:
        raise TooLarge(
            f"the program memory must have {program_needed:,} bytes ({each}), and has"
            f" {config.program_bytes:,}: {config.size_text(config.program_words)}."
            f" {program_needed - config.program_bytes:,} bytes are missing."
            f" {_most_weights(divided)} {_larger_program(program_needed, config)}"
        )


def _largest_maps(divided, plan, batch, config):
    """Return a sentence with the layer whose maps need the most memory."""
    layer = divided.layers[plan.peak]
    depth = config.array.depth
    largest = ", ".join(
        f"{' x '.join(map(str, divided.maps[number].size))} ({vectors * depth:,} bytes)"
        for number, vectors in plan.live
    )
    times = f", for each of {batch} inferences" if batch > 1 else ""
    return (
        f"Operator {layer.position[0]} ({layer.title}) needs the most maps:"
        f" {largest}{times}."
    )


def _most_weights(divided):
    """Return a sentence with the layer that has the most weights."""
    layer = max(divided.layers, key=lambda layer: layer.weights.size)
    return f"Operator {layer.position[0]} ({layer.title}) has the most weights."


def _larger_program(needed, config):
    """Return what to do if the program memory must have ``needed`` bytes."""
    words = 1 << (-(-needed // (config.program_bytes // config.program_words)) - 1).bit_length()
    if words > MAX_PROGRAM_WORDS:
        return f"Program_words must be {words:,}, and no such core has so many"
    return f"Program_words must be at least {words:,}"


def way_out(words, stripes, maps, config):
    """Return what to do if the memory must have ``words``; nothing if it is large enough."""
    if words <= config.words:
        return ""
    fits = words <= config.most_words
    number = f"{words:,}{' with stripes' * stripes}"
    least = f"at least {number}" if fits else f"{number}, and no such core has so many"
    text = f"words must be {least}; or the input must be smaller"
    if config.program_words:
        return f"A program memory has no maps: {text}"
    if maps <= config.memory_bytes and not has_single_port(config.array):
        text += "; with program_words only the maps need this memory"
    return text[0].upper() + text[1:]
