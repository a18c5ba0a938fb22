"""Random lists of loads, jobs and loops for tests of the list reader: no layers behind them."""

from weft.golden.network_core.digits import DIGITS
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import (
    ListEnd,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    places,
    split,
)

__all__ = [
    "buffer_words", "random_list", "random_step", "some_job", "some_load", "store_list",
]

SIZES = (
    "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
    "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
)


def random_step(rng, config):
    """A random address or step, with steps back."""
    return split(rng.randrange(-config.vectors, config.vectors), config.banks)


def some_job(rng, config, loads=0):
    """A job whose fields have random values that fit the core."""
    fields = {}
    for place in places(ListJob, config):
        low = -(1 << place.bits - 1) if place.signed else int(place.name in SIZES)
        high = (1 << place.bits - place.signed) - 1
        number = rng.choice([low, high, rng.randint(low, high)])
        fields[place.name] = random_step(rng, config) if place.address else number
    fields["sums"] &= 1 - fields["add"]
    if config.int16:
        others = fields["add"] | fields["sums"]
        for name in DIGITS:
            fields[name] &= 1 - others
            others |= fields[name]
    if config.multiply_maps:
        fields["multiply"] &= fields["add"]
    return ListJob(**fields | {"loads": loads, "panel_rows": rng.randint(1, config.array.rows)})


def buffer_words(config):
    """The words of each buffer, by its `LoadTarget`."""
    return dict(zip(LoadTarget, (config.b_words, config.lines, ADD_TABLE_WORDS), strict=True))


def some_load(rng, config, jobs=0):
    """A load whose fields have random values that fit the core."""
    target = rng.choice(list(LoadTarget))
    size = buffer_words(config)[target]
    first = rng.randrange(size)
    return ListLoad(
        diagonal=rng.getrandbits(1), fill=rng.getrandbits(1), jobs=jobs, target=target,
        fill_value=rng.randint(-128, 127), source=random_step(rng, config), first_word=first,
        words=rng.randint(1, size - first),
    )


def random_list(rng, config, count):
    """A list without deadlock: waits name loads and jobs before their descriptor."""
    found, loads, jobs, body = [], 0, 0, []
    for _ in range(count):
        if body and rng.random() < 0.25:
            own = body[-rng.randint(1, len(body)):]
            times = rng.randint(1, 4)
            body_loads = sum(isinstance(d, ListLoad) for d in own)
            body_jobs = len(own) - body_loads
            found.append(ListLoop(
                times=times, body=len(own), body_loads=body_loads, body_jobs=body_jobs,
                source_step=random_step(rng, config), input_step=random_step(rng, config),
                output_step=random_step(rng, config), add_step=random_step(rng, config),
            ))
            loads += (times - 1) * body_loads
            jobs += (times - 1) * body_jobs
            body = []
        elif rng.random() < 0.5:
            body.append(some_job(rng, config, rng.randint(max(0, loads - 2), loads)))
            found.append(body[-1])
            jobs += 1
        else:
            body.append(some_load(rng, config, rng.randint(max(0, jobs - 3), jobs)))
            found.append(body[-1])
            loads += 1
    return [*found, ListEnd(
        interrupt=rng.getrandbits(1), result=split(rng.randrange(20), config.banks),
        result_bytes=rng.randint(0, 40),
    )]


def store_list(config, memory, number, descriptors):
    """Write descriptors to a bytearray from vector ``number`` on; returns their list address."""
    raw = b"".join(d if isinstance(d, bytes) else d.pack() for d in descriptors)
    memory[number * config.array.depth : number * config.array.depth + len(raw)] = raw
    return split(number, config.banks)
