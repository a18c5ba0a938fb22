"""Random lists: chains of layers with streamed and resident weights, loops, ADD and SOFTMAX."""

from dataclasses import dataclass, replace

import numpy as np
from early_jobs import started_early
from network_core_jobs import MapPlace, MapPlan, NetworkCoreImage, job_of, parts_of, plan_map
from network_core_layers import NetworkCoreLayer, random_layer
from network_core_packing import PackedLayer, pack_layer
from network_core_softmax import SoftmaxRows, random_softmax, softmax_job
from random_lists import buffer_words

from weft.golden.network_core import NetworkCoreBuffers
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import ListEnd, ListLoad, ListLoop, LoadTarget, split

__all__ = ["ListCase", "random_list"]


@dataclass(frozen=True, kw_only=True)
class ListCase:
    """A list in a memory, and the maps that it computes.

    Attributes
    ----------
    image : NetworkCoreImage
        The memory with the list, sources of loads, and the first map.
    buffers : NetworkCoreBuffers
        The buffers at START; zeros except for resident weights.
    descriptors : list
    list_address, log_address : int
    base, limit : int
    jobs : int
        Jobs that the list executes.
    maps : list of (MapPlace, int8 [H, W, N])
        The output maps, by direct convolution.
    """

    image: NetworkCoreImage
    buffers: NetworkCoreBuffers
    descriptors: list
    list_address: int
    log_address: int
    base: int
    limit: int
    jobs: int
    maps: list


@dataclass(frozen=True)
class _Stage:
    """A layer that is executed once, or in each turn of a loop with other maps and weights.

    Turn 0 reads the output map of the last turn of the stage before. A layer in ``parts`` is
    several jobs, each with a load of its words.
    """

    turns: list[NetworkCoreLayer]
    packed: list[PackedLayer]
    plan: MapPlan  # of the input maps
    parts: bool
    softmax: SoftmaxRows | None = None  # of the output map of the last turn


def random_list(
    rng, config, *, layers=3, base=0, limit=None, most_turns=3, resident=0.3, parts=0.3, **sizes
) -> ListCase:
    """A random list without errors.

    Parameters
    ----------
    rng : numpy Generator
    config : NetworkCoreConfig
    layers : int
        Jobs and loops with a job.
    base, limit : int
        As of `weft.golden.network_core.run_list`.
    most_turns : int
        Turns of a loop, at most; without loops if 1.
    resident : float
        Probability that the words or the lines of a layer without a loop are in the buffers at
        START.
    parts : float
        Probability that a dense layer is computed in parts.
    sizes
        Arguments of `network_core_layers.random_layer`.

    Raises
    ------
    MemoryError
        If the list does not fit the memory.
    """
    stages = _stages(rng, config, layers, most_turns, parts, sizes)
    return _Builder(rng, config, base, limit, resident).build(stages, base, limit)


def _turn(rng, layer):
    """The layer with other values, and the same geometry and job."""
    def other(values):
        return rng.integers(-128, 128, values.shape).astype(np.int8)

    addition = layer.addition and replace(layer.addition, x=other(layer.addition.x))
    return replace(
        layer, x=other(layer.x), weights=other(layer.weights), bias=layer.bias[::-1],
        addition=addition,
    )


def _stages(rng, config, layers, most_turns, parts, sizes):
    x, stages = None, []
    for _ in range(layers):
        turns = [random_layer(rng, x=x, multiplies=config.multiply_maps, **sizes)]
        turns += [_turn(rng, turns[0]) for _ in range(rng.integers(most_turns))]
        packed = [pack_layer(config, turn) for turn in turns]
        plan = plan_map(rng, config, turns[0], packed[0].map_vectors)
        x, softmax = turns[-1].results(config.array.requantize), None
        # A pixel takes some hundred cycles.
        if config.softmax and x.shape[0] * x.shape[1] <= 16 and rng.random() < 0.3:
            softmax = random_softmax(rng, x)
            x = softmax.y
        in_parts = not packed[0].diagonal and rng.random() < parts
        stages.append(_Stage(turns, packed, plan, in_parts, softmax))
    return stages


def _loaded(packed):
    """Yield the target, the words and their bytes in the memory, for each load of a layer."""
    yield LoadTarget.B, packed.words, packed.source
    yield LoadTarget.PARAMETERS, packed.lines, packed.lines
    if packed.table is not None:
        yield LoadTarget.ADD_TABLE, packed.table, packed.table


class _Ring:
    """Places in a buffer, one after the other, and the last job that uses each word."""

    def __init__(self, size):
        self._used = np.zeros(size, int)  # jobs that must have ended before a word is overwritten
        self._next = 0

    def take(self, words, jobs):
        """The first of so many words, whose last job is ``jobs - 1``; jobs to wait for."""
        if self._next + words > len(self._used):
            self._next = 0
        first, self._next = self._next, self._next + words
        if words > len(self._used):
            raise MemoryError(f"the buffer must have {words} words or more")
        place = slice(first, first + words)
        waits, self._used[place] = int(self._used[place].max()), jobs
        return first, waits


    def use_until(self, first, jobs):
        """Words of jobs from ``first`` on are in use until job ``jobs - 1``."""
        self._used[self._used > first] = jobs


class _Builder:
    """Places maps, sources and descriptors in a memory."""

    def __init__(self, rng, config, base, limit, resident):
        self._rng, self._network_core, self._resident = rng, config, resident
        self._image = NetworkCoreImage(rng, config, base, limit)
        self._buffers = NetworkCoreBuffers(config)
        self._rings = {kind: _Ring(words) for kind, words in buffer_words(config).items()}
        self._loads = self._jobs = 0  # that the descriptors until now execute
        self._descriptors: list = []
        self._maps: list = []

    def build(self, stages, base, limit) -> ListCase:
        first, config, image = stages[0], self._network_core, self._image
        image.take(int(self._rng.integers(config.banks)))
        sources = self._take_maps(first.plan, first.turns[0].x.shape[0], len(first.turns))
        image.store_map(sources[0], first.turns[0].x)
        for stage, after in zip(stages, [*stages[1:], None], strict=True):
            for place, turn in zip(sources[1:], stage.turns[1:], strict=True):
                image.store_map(place, turn.x)
            sources = self._stage(stage, sources, after)
        last, values = self._maps[-1]
        size = values.shape[0] * last.row_pitch * config.array.depth
        self._descriptors.append(ListEnd(
            result=split(last.number, config.banks),
            result_bytes=int(self._rng.integers(min(size, 1024) + 1)),
        ))
        log = image.take(-(-8 // config.array.depth) * self._jobs)
        data = b"".join(descriptor.pack() for descriptor in self._descriptors)
        return ListCase(
            image=image, buffers=self._buffers, descriptors=self._descriptors,
            list_address=split(image.store(np.frombuffer(data, np.int8)), config.banks),
            log_address=split(log, config.banks), base=base,
            limit=config.words if limit is None else limit, jobs=self._jobs, maps=self._maps,
        )

    def _take_maps(self, plan, height, count):
        """Places of maps behind each other, so at equal distances."""
        return [self._image.take_map(plan, height) for _ in range(count)]

    def _stage(self, stage, sources, after):
        """Append the descriptors of a stage; return the places of the next stage's inputs."""
        layer, count = stage.turns[0], len(stage.turns)
        height, width = layer.out
        if after:
            plan, more = after.plan, len(after.turns) - 1
        else:
            pitch = -(-layer.channels // self._network_core.array.depth) + int(
                self._rng.integers(2)
            )
            plan, more = MapPlace(0, pitch, pitch * width), 0
        outputs = self._take_maps(plan, height, count + more)
        added = outputs[:count]  # in place
        if layer.addition:
            if self._rng.integers(2):
                added = self._take_maps(plan, height, count)
            for place, turn in zip(added, stage.turns, strict=True):
                self._image.store_map(place, turn.addition.x)
        mode = self._network_core.array.requantize
        self._maps += [
            (place, turn.results(mode)) for place, turn in zip(outputs, stage.turns, strict=False)
        ]
        self._append(stage, sources, outputs, added)
        if stage.softmax:
            return self._softmax(stage.softmax, outputs[count - 1 :], plan, height)
        return outputs[count - 1 :]

    def _softmax(self, rows, outputs, plan, height):
        """Append a SOFTMAX of the first output map, in place or to another one."""
        x = outputs[0]
        if self._rng.integers(2):
            outputs = self._take_maps(plan, height, len(outputs))
        else:
            self._maps.pop()
        self._maps.append((outputs[0], rows.y))
        table = rows.words(self._network_core)
        # Word 0 of the table is the first one: all its words are taken.
        first, waits = self._rings[LoadTarget.ADD_TABLE].take(ADD_TABLE_WORDS, self._jobs + 1)
        self._loads += 1
        self._jobs += 1
        self._descriptors += [
            ListLoad(
                target=LoadTarget.ADD_TABLE, jobs=waits, first_word=first, words=len(table),
                source=split(self._image.store(table), self._network_core.banks),
            ),
            softmax_job(self._network_core, rows, x, outputs[0], loads=self._loads),
        ]
        return outputs

    def _append(self, stage, sources, outputs, added):
        """Append loads, job and loop of a stage."""
        turns, packed = len(stage.turns), stage.packed[0]
        blocks = [  # what the loads of each turn read
            np.concatenate([data.reshape(-1) for _, _, data in _loaded(p)]) for p in stage.packed
        ]
        source = [self._image.store(block) for block in blocks][0]
        loads, places = [], {}
        job = job_of(
            self._network_core, stage.turns[0], packed, stage.plan, sources[0], outputs[0],
            added=added[0],
        )
        parts = parts_of(self._rng, self._network_core, job) if stage.parts else []
        count = turns * (len(parts) or 1)
        b_source = source
        for target, words, data in _loaded(packed):
            if parts and target == LoadTarget.B:
                source += data.size // self._network_core.array.depth
                continue
            first, waits = self._rings[target].take(len(words), self._jobs + count)
            places[target] = first
            # Words that no layer before has used may be in the buffer at START.
            if turns == 1 and waits == 0 and self._rng.random() < self._resident:
                buffer = (self._buffers.b, self._buffers.lines, self._buffers.table)[target]
                buffer[first : first + len(words)] = words
                source += data.size // self._network_core.array.depth
                continue
            loads.append(ListLoad(
                diagonal=int(target == LoadTarget.B and packed.diagonal), target=target,
                jobs=self._jobs if turns > 1 else waits,
                source=split(source, self._network_core.banks),
                first_word=first, words=len(words),
            ))
            source += data.size // self._network_core.array.depth
        line = places[LoadTarget.PARAMETERS]
        job = replace(
            job, parameter_line=line, add_line=line + job.add_line,
            b_word=places.get(LoadTarget.B, 0), loads=self._loads + len(loads),
        )
        jobs = self._parts(parts, job, turns, b_source, loads) if parts else [job]
        jobs = [started_early(self._rng, self._network_core, job) for job in jobs]
        at = int(self._rng.integers(len(loads) + 1))  # the heads do not depend on the order
        self._descriptors += [*loads[:at], *jobs, *loads[at:]]
        self._loads += turns * len(loads)
        self._jobs += count
        if turns > 1:
            self._loop(turns, len(loads), len(jobs), len(blocks[0]), sources, outputs, added)

    def _parts(self, parts, whole, turns, source, loads):
        """The jobs of a layer in parts; appends the load of each one's words to ``loads``."""
        jobs, array = [], self._network_core.array
        ring = self._rings[LoadTarget.B]
        for number, (first, job) in enumerate(parts):
            place, waits = ring.take(job.tile_words, self._jobs + number + 1)
            loads.append(ListLoad(
                target=LoadTarget.B, jobs=max(self._jobs, waits) if turns > 1 else waits,
                source=split(source + first * array.cols, self._network_core.banks),
                first_word=place, words=job.tile_words,
            ))
            jobs.append(replace(
                job, loads=self._loads + len(loads), b_word=place, add_line=whole.add_line,
                parameter_line=whole.parameter_line + job.parameter_line,
            ))
        if turns > 1:
            ring.use_until(self._jobs, self._jobs + turns * len(parts))
        return jobs

    def _loop(self, turns, loads, jobs, block_bytes, sources, outputs, added):
        """Append the loop of a body of loads and jobs."""
        def step(places):
            return split(places[1].number - places[0].number, self._network_core.banks)

        vectors = block_bytes // self._network_core.array.depth
        self._descriptors.append(ListLoop(
            times=turns, body=loads + jobs, body_loads=loads, body_jobs=jobs,
            source_step=split(vectors, self._network_core.banks), input_step=step(sources),
            output_step=step(outputs), add_step=step(added),
        ))
