"""Synthesis, place and route of many designs with several seeds; finished steps are cached."""

import contextlib
import functools
import hashlib
import json
import os
import statistics
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

import weft.config
import weft.hw
from weft.boards import presets
from weft.boards.toolchain import CriticalPath, Netlist, PnrResult, ToolchainError, digest, to_rtlil

__all__ = ["ResultCache", "SeedResults", "measure", "source_digest"]


class ResultCache:
    """Results on disk, by a key made of everything that the result depends on.

    Parameters
    ----------
    folder : Path
        Holds one JSON file for each key.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def get(self, key: str, make):
        """The cached value of ``key``; the first time ``make()``, which must return JSON data."""
        file = self._folder / f"{key}.json"
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads(file.read_text(encoding="utf-8"))
        value = make()
        self._folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(file)
        return value


@dataclass(frozen=True)
class SeedResults:
    """The results of one design on its device.

    Attributes
    ----------
    design : str
        16 hexadecimal digits: a digest of the netlist and of the tool versions.
    by_seed : dict of PnrResult
        The result of place and route for each seed.
    """

    design: str
    by_seed: dict[int, PnrResult]

    @property
    def best(self) -> PnrResult:
        """The result with the highest fmax."""
        return max(self.by_seed.values(), key=lambda result: result.fmax)

    @property
    def median(self) -> float:
        """The median of fmax over the seeds, in MHz."""
        return statistics.median(result.fmax for result in self.by_seed.values())


@functools.cache
def source_digest() -> str:
    """16 hexadecimal digits: a digest of all sources that designs and cycle counts depend on."""
    sources = hashlib.sha256(Path(presets.__file__).read_bytes())
    base, hardware = (Path(module.__file__).parent for module in (weft.config, weft.hw))
    for path in (*sorted(base.glob("*.py")), *sorted(hardware.rglob("*.py"))):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


def measure(
    tools, designs, seeds, *, folder: Path, jobs: int,
    on_step=lambda preset, outcome, remaining: None,
):
    """Synthesize ``designs``, then place and route each with all ``seeds``.

    Steps whose result is in the cache are not repeated.

    Parameters
    ----------
    tools : `weft.boards.toolchain.Toolchain`
        Already set up.
    designs : list of `weft.boards.presets.Preset`
    seeds : list of int
    folder : Path
        Keeps netlists and results.
    jobs : int
        Number of tools that run at once; at least 1.
    on_step : callable
        Called after each step with the preset, the outcome as text, and the number of steps left.

    Returns
    -------
    dict of `SeedResults` or `ToolchainError`
        By name of the preset; the error if a tool failed.
    """
    cache, sources = ResultCache(folder / "results"), source_digest()
    elaboration_lock, texts = threading.Lock(), {}

    def rtlil(preset):
        with elaboration_lock:
            if preset.name not in texts:
                texts[preset.name] = to_rtlil(
                    presets.component(preset), reset=preset.device.flow.reset
                )
            return texts[preset.name]

    def netlist_digest(preset):
        key = digest("design", sources, preset, preset.device.flow.reset)
        return cache.get(key, lambda: digest("netlist", preset.device, rtlil(preset)))

    digests = {preset.name: netlist_digest(preset) for preset in designs}

    def place(preset, netlist, seed):
        def run_tool():
            result = tools.place(
                netlist, preset.device, seed, out_of_context=preset.array_only
            )
            return asdict(result)

        value = cache.get(digest("placed", digests[preset.name], seed), run_tool)
        critical_path = value["critical_path"] | {"names": tuple(value["critical_path"]["names"])}
        return PnrResult(**value | {"critical_path": CriticalPath(**critical_path)})

    def synthesize(preset):
        netlist_folder = folder / f"{preset.name}-{digests[preset.name]}"
        return Netlist.of(netlist_folder) or tools.synthesize(
            rtlil(preset), preset.device, netlist_folder
        )

    results = {preset.name: SeedResults(digests[preset.name], {}) for preset in designs}
    with ThreadPoolExecutor(jobs) as pool:
        steps = {pool.submit(synthesize, preset): (preset, None) for preset in designs}
        remaining = len(designs) * (1 + len(seeds))
        while steps:
            for step in wait(steps, return_when=FIRST_COMPLETED).done:
                preset, seed = steps.pop(step)
                remaining -= 1
                try:
                    if seed is None:
                        netlist, outcome = step.result(), "synthesized"
                        steps |= {
                            pool.submit(place, preset, netlist, seed): (preset, seed)
                            for seed in seeds
                        }
                    elif isinstance(results[preset.name], SeedResults):
                        results[preset.name].by_seed[seed] = result = step.result()
                        outcome = f"{result.fmax:.1f} MHz with seed {seed}"
                except ToolchainError as error:
                    results[preset.name], outcome = error, str(error)
                    remaining -= len(seeds) if seed is None else 0
                on_step(preset, outcome, remaining)
    return results
