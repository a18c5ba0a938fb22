"""Random chunks for a requantizer of any kind, and their results by golden."""

import functools

import numpy as np
from amaranth.hdl import signed

from verif.amaranth_bench import play
from verif.loader_model import write_port
from weft.commands import Region, epilogue_flags
from weft.dtypes import DTYPES
from weft.geometry import memories
from weft.golden import scaled
from weft.hw.control.job_table import JobEntry
from weft.hw.control.tile_generator import Tile
from weft.hw.dtypes import HARDWARE
from weft.hw.output.result_scheduler import Chunk
from weft.timing import Latencies

__all__ = ["RequantizerBench"]

SETTLE = 16  # cycles, more than the latency of the row sums


@functools.cache
def _requantizer(config):
    """The requantizer of all benches of a Config: it is elaborated once."""
    geometries = memories(config)
    job = JobEntry(geometries, epilogue_flags(config))
    tile = Tile(geometries, job["epilogue"].shape)
    chunk = Chunk(lanes=config.lanes, tile=tile, cols=config.cols)
    inputs = {region.name.lower(): g for region, g in geometries.items()}
    del inputs["b"]
    if config.b_zero_point == "none":
        del inputs["a"]
    return HARDWARE["int8"](config).epilogue(
        geometries=geometries, chunk=chunk, acc=signed(32), lanes=config.lanes,
        sum_latency=Latencies.of(config).sum_latency,
        writes={name: write_port(geometry) for name, geometry in inputs.items()},
    )


class RequantizerBench:
    """The requantizer of a Config, the data to load, and random chunks with their results."""

    def __init__(self, config, seed=1):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.geometries = memories(config)
        self.dut = _requantizer(config)
        pages = self.geometries[Region.B].pages
        self.columns = [[self.column() for _ in range(config.cols)] for _ in range(pages)]
        self.table = self.rng.integers(0, 256, 256).tolist()
        # Panels of A, one word a page.
        a = self.geometries[Region.A]
        self.lines = self.rng.integers(-128, 128, (a.pages, a.edge, a.depth))

    def column(self):
        """Parameters of the hardware, and the float32 scale of golden in mode onnx."""
        rng = self.rng
        multiplier, scale = int(rng.integers(1 << 30, 1 << 31)), None
        shift = int(rng.integers(-31, 31 if rng.random() < 0.2 else -20))
        if self.config.requantize == "onnx":
            scale = np.float32(rng.integers(1 << 23, 1 << 24) * 2.0 ** (shift - 24))
            multiplier = int(scale.view(np.uint32))
        low, high = sorted(int(x) for x in rng.choice([-128, 0, 127, 255, -3, 200], 2))
        bias = rng.choice([-(1 << 31), (1 << 31) - 1, int(rng.integers(-9999, 9999)), 0])
        b_zero = int(rng.integers(-128, 128))
        zero = int(rng.integers(-128, 256))
        return (int(bias), multiplier, shift, b_zero, zero, low, high), scale

    def chunk(self):
        """A request that uses the epilogue, and its sums."""
        rng, config = self.rng, self.config
        epilogue = {"requantize": 1, "table": int(rng.integers(2))}
        if config.activation == "none":
            del epilogue["table"]
        sums = rng.integers(-(1 << 31), 1 << 31, config.lanes) >> rng.integers(0, 20)
        return {
            "row": int(rng.integers(config.rows)),
            "index": int(rng.integers(-(-config.cols // config.lanes))),
            "a_page": int(rng.integers(len(self.lines))),
            "b_panel": int(rng.integers(len(self.columns))), "epilogue": epilogue,
            "uses_epilogue": 1,
        }, sums.tolist()

    def results(self, chunk, sums):
        """The expected results of a chunk."""
        first = chunk["index"] * self.config.lanes
        results = []
        for lane, total in enumerate(sums):
            if first + lane == self.config.cols:
                break
            entry, scale = self.columns[chunk["b_panel"]][first + lane]
            bias, multiplier, shift, b_zero, zero, low, high = entry
            if self.config.b_zero_point == "none":
                b_zero = 0
            total += bias - b_zero * int(self.lines[chunk["a_page"]][chunk["row"]].sum())
            acc = np.array([(total + (1 << 31)) % (1 << 32) - (1 << 31)], np.int32)
            mode = self.config.requantize
            by = {"scale": scale} if scale else {"multiplier": multiplier, "shift": shift}
            y = min(max(int(scaled(acc, mode=mode, **by)[0]) + zero, low), high)
            results.append(self.table[y & 255] if chunk["epilogue"].get("table") else y & 255)
        return results

    def writes(self):
        """(port, write) of all data to load."""
        config = self.config
        for page, panel in enumerate(self.lines):
            data = b"".join(bytes(int(x) & 255 for x in row) for row in panel)
            yield from self._lines("a", Region.A, page, [data], last=1)
        chunks = -(-config.cols // config.lanes)
        for page, columns in enumerate(self.columns):
            entries = [DTYPES["int8"].parameter.pack(*entry) for entry, _ in columns]
            entries += [bytes(16)] * (chunks * config.lanes - len(entries))
            lanes = config.lanes
            words = [b"".join(entries[n * lanes : (n + 1) * lanes]) for n in range(chunks)]
            yield from self._lines("parameters", Region.PARAMETERS, page, words)
        if config.activation != "none":
            yield from self._lines("table", Region.TABLE, 0, [bytes([x]) for x in self.table])

    def _lines(self, port, operand, page, words, last=0):
        g = self.geometries[operand]
        for first in range(0, len(words), g.group):
            line = b"".join(words[first : first + g.group]).ljust(g.segments * g.stream, b"\0")
            for segment in range(g.segments):
                part = line[segment * g.stream : (segment + 1) * g.stream]
                yield port, {"valid": 1, "write": {
                    "line": (page * g.page + first) // g.group, "segment": segment,
                    "data": int.from_bytes(part, "little"), "page": page,
                    "begin": int(segment == 0), "end": last,
                }}

    def _gap(self, idle):
        """Cycles from a request to the next one."""
        gap, step = self.config.scale_cycles, 1
        if self.config.data_type.serial_epilogue(self.config):
            step = gap
            if self.rng.random() < idle / 4:  # after a pause, in any cycle
                gap, step = self.dut.LATENCY + 1, 1
        while self.rng.random() < idle:
            gap += step
        return gap

    def script(self, count, idle):
        """A script that loads all data and requests chunks; the results, by cycle."""
        script = [{port: write} for port, write in self.writes() if port in self.dut.writes]
        script = [{**dict.fromkeys(self.dut.writes, {"valid": 0}), **cycle} for cycle in script]
        script += [dict.fromkeys(self.dut.writes, {"valid": 0})] * SETTLE
        expected, sums = {}, {}
        for _ in range(count):
            chunk, values = self.chunk()
            script.append({"request": {"valid": 1, "chunk": chunk}})
            now = len(script) - 1
            sums[now + self.dut.sum_latency] = values
            expected[now + self.dut.LATENCY] = self.results(chunk, values)
            for _ in range(self._gap(idle) - 1):
                # A request without epilogue; it must be ignored.
                other = {**self.chunk()[0], "uses_epilogue": 0}
                script.append({"request": {"valid": int(self.rng.integers(2)), "chunk": other}})
        script += [{"request": {"valid": 0}} for _ in range(self.dut.LATENCY + 1)]
        for now, values in sums.items():
            script[now]["sums"] = values
        return script, expected

    def check(self, count, idle):
        """Play a script and compare all results."""
        assert self.dut.LATENCY == Latencies.of(self.config).epilogue_latency
        script, expected = self.script(count, idle)
        (found,) = play(self.dut, script, "results")
        for now, results in expected.items():
            assert [value & 255 for value in found[now]][: len(results)] == results
