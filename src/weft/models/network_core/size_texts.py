"""Words for people about a program that is too large for its core: why, and what to do."""

from weft.network_core.config import MAX_PROGRAM_WORDS, has_single_port

__all__ = ["larger_program", "largest_maps", "most_weights", "way_out"]


def largest_maps(divided, plan, batch, config):
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


def most_weights(divided):
    """Return a sentence with the layer that has the most weights."""
    layer = max(divided.layers, key=lambda layer: layer.weights.size)
    return f"Operator {layer.position[0]} ({layer.title}) has the most weights."


def larger_program(needed, config):
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
