"""Synthesis, place and route of many designs with several seeds, nothing of it done twice."""

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
    """What was found out before, by the key of all that it follows from.

    Parameters
    ----------
    folder : Path
        Gets a file for each key.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def get(self, key: str, make):
        """The value of ``key``, plain enough for JSON; of ``make()``, the first time."""
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
    """An entry on its device.

    Attributes
    ----------
    design : str
        16 digits that stand for its netlist and the tools.
    by_seed : dict of Placed
        By seed.
    """

    design: str
    by_seed: dict[int, PnrResult]

    @property
    def best(self) -> PnrResult:
        """With the seed that made it fastest."""
        return max(self.by_seed.values(), key=lambda one: one.fmax)

    @property
    def median(self) -> float:
        """The median of fmax over the seeds, in MHz."""
        return statistics.median(one.fmax for one in self.by_seed.values())


@functools.cache
def source_digest() -> str:
    """16 digits that change with all that designs and their cycles follow from."""
    found = hashlib.sha256(Path(presets.__file__).read_bytes())
    base, hardware = (Path(module.__file__).parent for module in (weft.config, weft.hw))
    for path in (*sorted(base.glob("*.py")), *sorted(hardware.rglob("*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def measure(tools, entries, seeds, *, folder: Path, jobs: int, said=lambda entry, what, left: None):
    """Place ``entries`` with each of ``seeds``, ``jobs`` at a time; what is known is not done.

    Parameters
    ----------
    tools : `weft.boards.toolchain.Toolchain`
        Set up.
    folder : Path
        Keeps netlists and results.
    jobs : int
        At least 1.
    said : callable
        Called after each step with the entry, what came out, and how many steps are left.

    Returns
    -------
    dict of `SeedResults` or `ToolchainError`
        By name of the entry: the error where the tools could not.
    """
    cache, made = ResultCache(folder / "results"), source_digest()
    elaborating, texts = threading.Lock(), {}

    def text(entry):
        with elaborating:  # of all threads, one
            if entry.name not in texts:
                texts[entry.name] = to_rtlil(
                    presets.component(entry), reset=entry.device.reset
                )
            return texts[entry.name]

    def known(entry):
        key = digest("design", made, entry, entry.device.reset)
        return cache.get(key, lambda: digest("netlist", entry.device, text(entry)))

    designs = {entry.name: known(entry) for entry in entries}

    def place(entry, netlist, seed):
        def placed():
            return asdict(tools.place(netlist, entry.device, seed, out_of_context=entry.array_only))

        value = cache.get(digest("placed", designs[entry.name], seed), placed)
        critical_path = value["critical_path"] | {"names": tuple(value["critical_path"]["names"])}
        return PnrResult(**value | {"critical_path": CriticalPath(**critical_path)})

    def synthesize(entry):
        where = folder / f"{entry.name}-{designs[entry.name]}"
        return Netlist.of(where) or tools.synthesize(text(entry), entry.device, where)

    found = {entry.name: SeedResults(designs[entry.name], {}) for entry in entries}
    with ThreadPoolExecutor(jobs) as pool:
        steps = {pool.submit(synthesize, entry): (entry, None) for entry in entries}
        left = len(entries) * (1 + len(seeds))
        while steps:
            for step in wait(steps, return_when=FIRST_COMPLETED).done:
                entry, seed = steps.pop(step)
                left -= 1
                try:
                    if seed is None:
                        netlist, what = step.result(), "synthesized"
                        steps |= {
                            pool.submit(place, entry, netlist, one): (entry, one) for one in seeds
                        }
                    elif isinstance(found[entry.name], SeedResults):
                        found[entry.name].by_seed[seed] = one = step.result()
                        what = f"{one.fmax:.1f} MHz with seed {seed}"
                except ToolchainError as error:
                    found[entry.name], what = error, str(error)
                    left -= len(seeds) if seed is None else 0
                said(entry, what, left)
    return found
