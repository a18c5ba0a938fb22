"""All seeds of many designs; finished runs are cached."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from weft.bench.placement import DesignRun
from weft.boards import presets, toolchain
from weft.boards.benchmark import ResultCache, SeedResults, source_digest
from weft.boards.pnr_result import CriticalPath, PnrResult
from weft.boards.presets import Preset
from weft.boards.toolchain import digest
from weft.tasks.engine import Engine

__all__ = ["measure"]


def measure(
    engine: Engine, designs: Sequence[Preset], seeds: Sequence[int], *, folder: Path,
    on_step: Callable[[Preset, str, int], None] = lambda preset, outcome, remaining: None,
) -> dict[str, SeedResults]:
    """Place and route each of ``designs`` with all ``seeds``.

    Runs whose result is in the cache are not repeated.

    Parameters
    ----------
    engine : Engine
        Of `weft.bench.placement.PlacementWork`.
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
        found[preset.name] = SeedResults(design)
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


def _rtlil(preset):
    component = presets.component(preset)
    return zlib.compress(
        toolchain.to_rtlil(component, reset=preset.device.flow.reset).encode()
    )


def _result(value):
    path = value["critical_path"]
    path = CriticalPath(**path | {"names": tuple(path["names"])})
    return PnrResult(**value | {"critical_path": path})
