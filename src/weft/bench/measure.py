"""All seeds of many designs, as work of an engine; finished runs are cached."""

import contextlib
import functools
import itertools
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.boards import design_digest, presets, toolchain
from weft.boards.benchmark import CriticalPath, PnrResult, ResultCache, SeedResults, source_digest
from weft.boards.devices import Device
from weft.boards.presets import Preset
from weft.boards.toolchain import VERSIONS, Netlist, ToolchainError, digest, digests
from weft.files import write_bytes
from weft.sim.cache import folder
from weft.tasks.engine import Engine, Task

__all__ = ["DesignRun", "PlacementWork", "measure", "placed", "preset_digests"]


FILES = "top.json", "cells.json"  # of a netlist


@dataclass(frozen=True, eq=False)
class DesignRun:
    """A design on a device with a seed.

    Attributes
    ----------
    name : str
        For messages.
    rtlil : bytes
        Text of `weft.boards.toolchain.to_rtlil`, compressed with zlib.
    device : Device
    seed : int
    out_of_context : bool
        The design is a part: on an ECP5, its ports get no pins.
    """

    name: str
    rtlil: bytes
    device: Device
    seed: int
    out_of_context: bool = False

    @functools.cached_property
    def design(self) -> str:
        """16 hexadecimal digits that all seeds of a design on a device share."""
        return digest("placement", self.device, zlib.decompress(self.rtlil).decode())


@dataclass(frozen=True)
class PlacementWork:
    """How placements run; the work of an engine (`weft.tasks.engine.Work`).

    A result is a `PnrResult`, or a text: the error of the tool.
    """

    def task(self, item: DesignRun) -> Task:
        """Place and route a design; it is synthesized once for all seeds."""
        netlist = Task(f"netlist-{item.design}", self.synthesize, (item.rtlil, item.device))
        kind = "part" if item.out_of_context else "whole"
        key = f"placed-{item.design}-{kind}-{item.seed}"
        return Task(key, self.place, (netlist, item.device, item.seed, item.out_of_context))

    def failed(self, detail: str) -> str:
        """The result of a placement whose worker failed or was lost."""
        return detail

    def versions(self) -> dict[str, str]:
        """The versions of the tools, and of Weft's passes over a netlist."""
        return {**VERSIONS, "passes": digest()}

    def set_up(self) -> None:
        """Install the tools on this machine, if needed; raises ToolchainError."""
        _tools().set_up()

    def synthesize(
        self, rtlil: bytes, device: Device, stopped: Callable[[], bool]
    ) -> dict[str, bytes] | str:
        """The compressed files of the netlist, or the error of the tool."""
        with _place() as place:
            try:
                _tools().synthesize(zlib.decompress(rtlil).decode(), device, place)
            except ToolchainError as error:
                return str(error)
            return {name: zlib.compress((place / name).read_bytes(), 6) for name in FILES}

    def place(
        self, netlist: dict[str, bytes] | str, device: Device, seed: int, out_of_context: bool,
        stopped: Callable[[], bool],
    ) -> PnrResult | str:
        """The result, or the error of the tool; a failed synthesis is the result of each seed."""
        if isinstance(netlist, str):
            return netlist
        with _place() as place:
            for name, data in netlist.items():
                write_bytes(place / name, zlib.decompress(data))
            try:
                return _tools().place(
                    Netlist.of(place), device, seed, out_of_context=out_of_context
                )
            except ToolchainError as error:
                return str(error)


def placed(engine: Engine, items: Iterable[DesignRun]) -> dict[str, list[PnrResult]]:
    """The results of all items by name, by their seeds; raises ToolchainError if a tool failed."""
    for item in items:
        engine.submit(item)
    found = []
    for item, result in engine.results():
        if isinstance(result, str):
            raise ToolchainError(f"{item.name}: {result}")
        found.append((item, result))
    found.sort(key=lambda each: (each[0].name, each[0].seed))
    groups = itertools.groupby(found, key=lambda each: each[0].name)
    return {name: [result for _, result in group] for name, group in groups}


def _tools():
    return toolchain.Toolchain(folder(), say=lambda text: None)


@contextlib.contextmanager
def _place():
    """A temporary folder that the tools see, in Weft's build folder."""
    parent = folder() / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


def measure(
    engine: Engine, designs: Sequence[Preset], seeds: Sequence[int], *, folder: Path,
    on_step: Callable[[Preset, str, int], None] = lambda preset, outcome, remaining: None,
) -> dict[str, SeedResults]:
    """Place and route each of ``designs`` with all ``seeds``.

    Runs whose result is in the cache are not repeated.

    Parameters
    ----------
    engine : Engine
        Of `weft.bench.measure.PlacementWork`.
    designs : sequence of Preset
    seeds : sequence of int
    folder : Path
        Keeps the results.
    on_step : callable
        Called after each run with the preset, the outcome as text, and the number of runs left.

    Returns
    -------
    dict of `SeedResults`
        By name of the preset.
    """
    cache, found, waiting = ResultCache(folder / "results"), {}, {}
    remaining = len(designs) * len(seeds)

    def arrived(preset, seed, result):
        nonlocal remaining
        remaining -= 1
        if isinstance(result, str):
            found[preset.name].failed[seed] = outcome = result
        else:
            found[preset.name].by_seed[seed] = result
            outcome = f"{result.fmax:.1f} MHz with seed {seed}"
        on_step(preset, outcome, remaining)

    for preset in designs:
        design, text = _design(preset, cache)
        method = Path(design_digest.__file__).read_text(encoding="utf-8")
        value = cache.get(
            digest("digests", method, design, preset.array_only),
            functools.partial(preset_digests, preset, text),
        )
        found[preset.name] = SeedResults(design, digests=value)
        for seed in seeds:
            key = digest("placed", design, seed)
            value = cache.find(key)
            if value is not None:
                arrived(preset, seed, _result(value))
                continue
            text = text or _rtlil(preset)
            item = DesignRun(preset.name, text, preset.device, seed, preset.array_only)
            waiting[item] = preset, key
            engine.submit(item)
    for item, result in engine.results():
        preset, key = waiting[item]
        if not isinstance(result, str):
            cache.keep(key, asdict(result))
        arrived(preset, item.seed, result)
    return found


def _design(preset, cache):
    """The digest of a netlist; and its compressed text, if it had to be made."""
    key = digest("design", source_digest(), preset, preset.device.flow.reset)
    value = cache.find(key)
    if value is not None:
        return value, None
    text = _rtlil(preset)
    value = digest("netlist", preset.device, zlib.decompress(text).decode())
    cache.keep(key, value)
    return value, text


def preset_digests(preset: Preset, text: bytes | None = None) -> dict[str, str]:
    """`weft.boards.toolchain.digests` of a preset, or of the compressed text of its design."""
    text = text or _rtlil(preset)
    return digests(zlib.decompress(text).decode(), preset.device, preset.array_only)


def _rtlil(preset):
    component = presets.component(preset)
    return zlib.compress(
        toolchain.to_rtlil(component, reset=preset.device.flow.reset).encode()
    )


def _result(value):
    path = value["critical_path"]
    path = CriticalPath(**path | {"names": tuple(path["names"])})
    return PnrResult(**value | {"critical_path": path})
