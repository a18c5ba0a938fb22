"""Lists with several faults: mutated descriptors, and windows that end within the list."""

import struct
from dataclasses import dataclass, replace

import numpy as np
from network_core_lists import ListCase, random_list
from random_lists import SIZES

from weft.network_core.config import MAX_SOFTMAX
from weft.network_core.descriptors import (
    BANK_BITS,
    DESCRIPTOR_BYTES,
    DESCRIPTOR_WORDS,
    ListEnd,
    ListJob,
    ListLoad,
    ListLoop,
    join,
    places,
)

__all__ = ["MutatedList", "mutated_lists"]

# Changes of these addresses could store a map over the list, which is undefined.
STORED = {"output", "output_pixel_step", "output_row_step", "output_step"}
WAITS = {"loads", "jobs", "body_loads", "body_jobs"}
# Flags of which a job has one at most: their bits.
FORMS = {"add": 9, "sums": 10, "softmax": 13, "lstm": 15, "pairs": 16, "quads": 17,
         "quad_pairs": 18, "words": 19}
# With another value of these, a job may use words that no load of the list has written, or read
# vectors that it stores.
UNDEFINED = {
    *WAITS, "body", "target", "fill", "packed", "source", "source_step", "first_word", "words",
    "first_x",
}


@dataclass(frozen=True)
class MutatedList:
    """A list with faults, and what was changed.

    Attributes
    ----------
    case : ListCase
        Its image has the faults, and its ``limit`` is the one to use.
    changes : tuple of str
    defined : bool
        The bytes of its maps are defined, if it ends without an error.
    """

    case: ListCase
    changes: tuple
    defined: bool


def mutated_lists(rng, config, count):
    """Yield ``count`` mutated lists: mostly one to three faults, often in one descriptor.

    Some have a load that never starts and a wrong END, or taps far behind the first ones.
    """
    while count:
        try:
            case = random_list(
                rng, config, layers=int(rng.integers(1, 4)), base=int(rng.choice([0, 5])),
                resident=0, most_pixels=3, most_channels=6, most_kernel=2,
            )
        except MemoryError:
            continue
        yield _mutated(rng, config, case)
        count -= 1


def _mutated(rng, config, case):
    """The list with its faults."""
    descriptors = case.descriptors
    entries = [list(struct.unpack(f"<{DESCRIPTOR_WORDS}I", d.pack())) for d in descriptors]
    number, changes = int(rng.integers(len(entries))), []
    form = rng.random()
    if form < 0.1:
        changes += _wait_and_end(rng, case, entries)
    elif form < 0.2:
        changes += _far_taps(config, case, entries)
    else:
        for _ in range(rng.choice([1, 2, 2, 3])):
            if rng.random() < 0.3:
                number = int(rng.integers(len(entries)))
            change = _change(rng, config, case, descriptors[number], entries[number])
            changes.append((number, *change))
    mutant = _with_words(config, case, entries)
    names = {name for _, name, _ in changes}
    changes = [f"{type(descriptors[n]).__name__} {n}: {name} = {value:#x}"
               for n, name, value in changes]
    if rng.random() < 0.2:
        last = join(case.list_address, config.banks) * config.array.depth + len(entries) * 128
        cut = int(rng.integers(1, 2 * DESCRIPTOR_BYTES))
        limit = case.base + max(1, (last - cut) // (config.banks * config.array.depth))
        mutant = replace(mutant, limit=limit)
        changes.append(f"limit {limit}")
    return MutatedList(mutant, tuple(changes), not names & UNDEFINED)


def _wait_and_end(rng, case, entries):
    """A load waits for ever, and the result of END lies beyond the window."""
    loads = [n for n, d in enumerate(case.descriptors) if isinstance(d, ListLoad)]
    changes = [(int(rng.choice(loads)), "jobs", 999)]
    changes.append((len(entries) - 1, "result", case.limit << BANK_BITS))
    changes.append((len(entries) - 1, "result_bytes", int(rng.integers(3))))
    for number, name, value in changes:
        _set(type(case.descriptors[number]), entries[number], name, value)
    return changes


def _far_taps(config, case, entries):
    """Two steps of as many words as an address can name; the tap between them is not read."""
    for number, job in enumerate(case.descriptors):
        if isinstance(job, ListJob) and min(job.kernel_height, job.kernel_width) > 1:
            far = config.address_words << BANK_BITS
            changes = [
                ("in_width", 1), ("first_x", 0), ("first_y", 0), ("stride_x", 0),
                ("tap_x_step", job.tap_x_step + far & 0xFFFFFFFF),
                ("tap_y_step", job.tap_y_step + far & 0xFFFFFFFF),
            ]
            for name, value in changes:
                _set(ListJob, entries[number], name, value)
            return [(number, *change) for change in changes]
    return []


def _with_words(config, case, entries) -> ListCase:
    """The case with a list of other words."""
    memory = case.image.memory.copy()
    data = b"".join(struct.pack(f"<{DESCRIPTOR_WORDS}I", *words) for words in entries)
    first = join(case.list_address, config.banks) + case.base * config.banks
    at = first * config.array.depth
    memory.reshape(-1)[at : at + len(data)] = np.frombuffer(data, memory.dtype)
    image = object.__new__(type(case.image))
    image.__dict__.update(case.image.__dict__, memory=memory)
    return replace(case, image=image)


def _set(kind, words, name, value):
    """Set a field in the words of a descriptor."""
    place = next(place for place in places(kind) if place.name == name)
    mask = (1 << place.bits) - 1
    words[place.word] &= ~(mask << place.low)
    words[place.word] |= (int(value) & mask) << place.low


def _change(rng, config, case, descriptor, words):
    """Change the words of a descriptor at random; returns the name and the value of the change."""
    kind = type(descriptor)
    what = rng.choice(["unused", "header", "field"], p=[0.12, 0.05, 0.83])
    if what == "unused":
        used = set(range(8))
        for place in places(kind, config):
            used |= {32 * place.word + place.low + n for n in range(place.bits)}
        bit = int(rng.choice([n for n in range(32 * DESCRIPTOR_WORDS) if n not in used]))
        words[bit // 32] |= 1 << bit % 32
        return "unused bit", bit
    if what == "header":
        words[0] ^= int(rng.integers(1, 256))
        return "header", words[0] & 0xFF
    choices = [(p, _values(rng, config, case, kind, p, words)) for p in places(kind, config)]
    choices = [choice for choice in choices if choice[1]]
    place, values = choices[int(rng.integers(len(choices)))]
    value = int(rng.choice(values)) & (1 << place.bits) - 1
    _set(kind, words, place.name, value)
    return place.name, value


def _values(rng, config, case, kind, place, words):
    """The values that a field may get."""
    old = words[place.word] >> place.low & (1 << place.bits) - 1
    if place.address:
        return _addresses(rng, config, case, place, old)
    if place.name in WAITS:
        return [0, old + 1, 999, 0xFFFF]
    if kind is ListJob:
        if place.name == "panel_rows":
            return [0, config.array.rows + 1, 255]
        if place.name in FORMS:
            return [1] if any(words[0] >> FORMS[name] & 1 for name in FORMS) else []
        if place.name == "multiply":
            return [] if words[0] >> 9 & 1 else [1]
        if place.name in ("early", "two_rows"):
            return [1 - old]
        most = [MAX_SOFTMAX + 1] * (place.name == "columns" and words[0] >> FORMS["softmax"] & 1)
        return [0, *most] if place.name in SIZES else []
    return {
        ListLoad: {
            "words": [0, 0xFFFF, old + 1], "target": [1, 2, 3, 4, 255],
            "first_word": [0xFFFF, config.b_words - 1, config.b_words, 0x8000], "fill": [1 - old],
            "packed": [1 - old],
        },
        ListLoop: {"times": [0, 1], "body": [0, old + 1, 0xFFFF]},
        ListEnd: {"result_bytes": [0, 1024, 1025, 0xFFFF], "interrupt": [1 - old]},
    }[kind].get(place.name, [])


def _addresses(rng, config, case, place, old):
    """Addresses: another bank, beyond the window, far away, or the same one modulo its words."""
    words, bank = 2 * config.address_words, old % (1 << BANK_BITS)
    far = [
        old + (words * int(rng.integers(-3, 4)) << BANK_BITS),
        old + (config.address_words << BANK_BITS), old + (words + 1 << BANK_BITS),
    ]
    if place.name.endswith("_step") and place.name in STORED:
        far.pop()  # its neighbours may be the list
    beyond = [-1 << BANK_BITS, case.limit << BANK_BITS]
    if place.name in ("output", "add_input", "input", "source", "result"):
        far += beyond
    if place.name not in STORED:
        far.append(int(rng.integers(1 << 24)) << BANK_BITS)
    return [
        *(value & 0xFFFFFFFF for value in far),
        old - bank + int(rng.choice([config.banks, 255])),
    ]
