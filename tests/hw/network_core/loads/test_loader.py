"""The loader: words of all buffers, against a model that computes each byte."""

import random

import pytest
from network_cores import network_core_config
from random_lists import buffer_words
from side_port import SidePort, hardware_address

from verif.amaranth_bench import checker, play, put, send, simulate, ticks
from weft.hw.network_core.loads.loader import ListLoader
from weft.network_core.descriptors import ListLoad, LoadTarget


def network_core_of(rows, cols, depth, read_vectors, lanes=2, **fields):
    sizes = {"words": 64, "b_words": 16, "lines": 8, "read_vectors": read_vectors}
    return network_core_config(rows, cols, depth, lanes, **sizes | fields)


BUFFERS = "b", "lines", "table"  # in the order of LoadTarget
CHIPS = [
    network_core_of(4, 4, 4, 2), network_core_of(2, 8, 2, 4), network_core_of(2, 2, 8, 1),
    network_core_of(1, 4, 2, 4, 1),
    # A beat of scales for 4 words, for 1 word of two beats, for 4 words of two beats.
    network_core_of(4, 4, 4, 2, int4=True), network_core_of(2, 8, 2, 2, int4=True),
    network_core_of(3, 8, 8, 2, int4=True, words=128),
]


def loaded_bytes(config, vectors, load, word):
    """The vectors of word ``word`` of a load, each a list of ``depth`` bytes."""
    cols, depth = config.array.cols, config.array.depth
    count = [cols, config.line_vectors, config.add_table_vectors][load.target]

    def source(n):
        if load.fill:
            return [load.fill_value & 0xFF] * depth
        return list(vectors[load.source + n].to_bytes(depth, "little"))

    if load.target == LoadTarget.B and load.diagonal:
        return [
            [
                byte if d % cols == i % depth
                and (cols <= depth or i // depth == word % config.phases) else 0
                for d, byte in enumerate(source(word))
            ]
            for i in range(cols)
        ]
    if load.packed:
        return [unpacked(config, vectors, load.source, word, i) for i in range(cols)]
    return [source(word * count + n) for n in range(count)]


def unpacked(config, vectors, source, word, column):
    """The bytes of a column of a word of int4: code times scale, both found bit by bit."""
    depth, cols = config.array.depth, config.array.cols
    beat = 8 * config.read_vectors * depth  # bits
    memory = sum(
        vector << 8 * depth * n for n, vector in enumerate(vectors[source:])
    )
    units, place = divmod(word, beat // (4 * cols))  # words whose scales are one beat
    first = units * (beat + depth * beat)
    scale = memory >> first + 4 * (place * cols + column) & 15
    codes = memory >> first + beat + 4 * depth * (place * cols + column)
    found = []
    for byte in range(depth):
        code = codes >> 4 * byte & 15
        found.append(scale * (code - 16 if code & 8 else code) & 0xFF)
    return found


def run(config, loads, *, stall=0.0, limit=None, base=0, expect_error=False, seed=0):
    """Execute loads; returns both buffers, the cycles of all ``done``, the model of the port."""
    rng = random.Random(seed)
    vectors = [rng.getrandbits(8 * config.array.depth) for _ in range(config.vectors)]
    port = SidePort(config, vectors, stall=stall, seed=seed)
    dut = ListLoader(config)
    buffers = {name: {} for name in BUFFERS}
    writes, done, errors = [], [], []

    async def bench(ctx):
        put(ctx, dut.window.base, base)
        put(ctx, dut.window.limit, config.words if limit is None else limit)
        for load in loads:
            fields = {name: getattr(load, name) for name in (
                "diagonal", "fill", "jobs", "target", "fill_value", "first_word", "words",
                *["packed"] * config.int4,
            )}
            fields["source"] = hardware_address(config, load.source)
            await send(ctx, dut.load.request, [fields])
            await ticks(ctx, rng.choice([0, 0, 3]))
        while len(done) < len(loads) and not errors:
            await ctx.tick()
        await ticks(ctx, 20)

    async def watch(ctx):
        cycle = 0
        vectors_of = config.array.cols, config.line_vectors, config.add_table_vectors
        async for _, _, *ports, end, error in ctx.tick().sample(
            dut.b, dut.lines, dut.table, dut.load.done, dut.load.address_error
        ):
            for name, count, write in zip(BUFFERS, vectors_of, ports, strict=True):
                if write.enable:
                    writes.append(cycle)
                for n in range(count):
                    if write.enable >> n // config.read_vectors & 1:
                        data = write.data[n].to_bytes(config.array.depth, "little")
                        buffers[name].setdefault(write.word, {})[n] = list(data)
            if end:
                assert writes[-1] == cycle, "done must come with the last write of the load"
                done.append(cycle)
            if error:
                errors.append(cycle)
            cycle += 1

    async def serve(ctx):
        await port.serve(ctx, dut)

    simulate(
        dut, bench, background=[watch, serve, checker(dut.reads.request, "reads")], limit=4_000
    )
    assert bool(errors) == expect_error
    assert expect_error or writes[-1] == done[-1]
    return buffers, done, port


def random_loads(config, rng, count):
    """Loads of all kinds whose vectors lie in the memory."""
    loads = []
    for _ in range(count):
        target = rng.choice(list(LoadTarget))
        size = min(16, buffer_words(config)[target])
        words = rng.choice([1, 2, rng.randint(1, size)])
        vectors = words * max(config.array.cols, config.line_vectors, config.add_table_vectors)
        packed = config.int4 and target == LoadTarget.B and rng.random() < 0.7
        loads.append(ListLoad(
            packed=packed, diagonal=rng.random() < 0.4 and not packed,
            fill=rng.random() < 0.25 and not packed, target=target,
            fill_value=rng.randint(-128, 127), words=words,
            first_word=rng.randint(0, buffer_words(config)[target] - words),
            source=rng.randint(0, config.vectors - vectors),
        ))
    return loads


@pytest.mark.parametrize(
    "config", CHIPS, ids=lambda config: f"{config.array.name}r{config.read_vectors}"
)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_words(config, stall):
    rng = random.Random(5)
    loads = random_loads(config, rng, 12)
    buffers, done, port = run(config, loads, stall=stall)
    expected = {name: {} for name in BUFFERS}
    for load in loads:
        for word in range(load.words):
            target = expected[BUFFERS[load.target]]
            vectors = loaded_bytes(config, port.vectors, load, word)
            target[load.first_word + word] = dict(enumerate(vectors))
    assert buffers == expected


def cycles_of(config, load, **options):
    """Cycles from the end of a short load to the end of ``load``, which follows it."""
    first = ListLoad(words=1, target=LoadTarget.B)
    _, done, port = run(config, [first, load], **options)
    return done[1] - done[0], port


def test_latency():
    dut = ListLoader(CHIPS[0])
    load = {"load.request.payload": {"words": 1}, "load.request.valid": 1}
    script = [{"window.limit": 64, **load}, {"load.request.valid": 0}]
    [valid] = play(dut, script, "reads.request.valid", tail=5)
    assert valid.index(1) == ListLoader.LATENCY


def test_streams_back_to_back():
    config = network_core_of(4, 4, 4, 2)
    one, _ = cycles_of(config, ListLoad(words=1, target=LoadTarget.B))
    many, _ = cycles_of(config, ListLoad(words=9, target=LoadTarget.B))
    assert many - one == 8 * 2  # 4 vectors a word, 2 a cycle
    one, _ = cycles_of(config, ListLoad(words=1, diagonal=1))
    many, _ = cycles_of(config, ListLoad(words=9, diagonal=1))
    assert many - one == 8
    one, _ = cycles_of(config, ListLoad(words=1, target=LoadTarget.ADD_TABLE))
    many, _ = cycles_of(config, ListLoad(words=9, target=LoadTarget.ADD_TABLE))
    assert many - one == 8
    one, _ = cycles_of(config, ListLoad(words=1, fill=1))
    many, port = cycles_of(config, ListLoad(words=9, fill=1))
    assert many - one == 8
    assert len(port.reads) == 2  # of the first load


@pytest.mark.parametrize("diagonal", [0, 1])
@pytest.mark.parametrize("edge", ["base", "limit"])
def test_no_read_outside_the_limits(edge, diagonal):
    config = network_core_of(4, 4, 4, 2)
    base, limit = 10, 20
    end = (limit if edge == "limit" else base) * config.banks
    vectors = 8 if diagonal else 32
    good = ListLoad(
        words=8, diagonal=diagonal, source=end - vectors if edge == "limit" else end
    )
    _, done, port = run(config, [good], base=base, limit=limit)
    assert len(done) == 1 and len(port.reads) == (8 if diagonal else 16)
    step = 1 if edge == "limit" else -1
    bad = ListLoad(words=8, diagonal=diagonal, source=good.source + step)
    _, done, port = run(config, [bad], base=base, limit=limit, expect_error=True)
    assert not done
    assert len(port.reads) == ((7 if diagonal else 15) if edge == "limit" else 0)
    assert all(base * config.banks <= n for n in port.reads)
    span = 1 if diagonal else config.read_vectors
    assert all(n + span <= limit * config.banks for n in port.reads)


def test_a_vector_before_the_memory_is_outside():
    _, done, port = run(CHIPS[0], [ListLoad(words=1, source=-1)], expect_error=True)
    assert not done and not port.reads
