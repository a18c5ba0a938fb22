"""The accelerator that a network is compiled for: its Config, its clock, and its link to the host.
"""

import functools
import json
import os
from dataclasses import dataclass
from importlib import resources
from typing import Any

from weft.config import Config
from weft.design import LANGUAGE, NETWORK, Design
from weft.designs import design_from_dict, design_from_toml
from weft.hints import to_install
from weft.models.errors import ModelError
from weft.network_core.cycles import ProgramTiming

__all__ = ["NetworkTarget", "board_cores", "board_target", "target_of", "target_of_file"]


@dataclass(frozen=True)
class NetworkTarget:
    """An accelerator, and the known facts about the place where it runs.

    Attributes
    ----------
    name : str
        Name of the board, of the TOML file without its suffix, or of the Config.
    config : Config, NetworkCoreConfig or LanguageCoreConfig
        The core.
    clock : float or None
        Clock of the accelerator in MHz.
    baud : int or None
        Rate of the serial port in bits per second; a byte takes 10 bits.
    memory : ProgramTiming or None
        Timing of the program memory; None if it is not known, or if there is none.
    placed : bool or None
        Whether nextpnr has met the clock; None if it is not known.
    by_lists : bool
        The product core is a network core, which computes each product by a list of its own: see
        `weft.host.emulated.ListTransport`. Estimates are the ones of a product core with
        the same array.
    """

    name: str
    config: Any
    clock: float | None = None
    baud: int | None = None
    memory: ProgramTiming | None = None
    placed: bool | None = None
    by_lists: bool = False

    @property
    def array(self) -> Config:
        """The Config of the array."""
        return self.config.array

    @property
    def kind(self) -> str:
        """The kind of the core."""
        return self.config.kind

    @property
    def executes_lists(self) -> bool:
        """Whether the core is a network core, for a whole network or for its products."""
        return self.kind == NETWORK or self.by_lists

    def core_seconds(self, cycles: int) -> float | None:
        """Return ``cycles / clock`` in seconds; None if the clock is not known."""
        return None if self.clock is None else cycles / (self.clock * 1e6)

    def wire_seconds(self, bytes_in: int, bytes_out: int) -> float | None:
        """Return the seconds that the bytes take on the serial port; None without one.

        Commands and results use separate wires, so the slower direction counts: ``10 *
        max(bytes_in, bytes_out) / baud``.
        """
        return None if self.baud is None else 10 * max(bytes_in, bytes_out) / self.baud


def target_of(target, purpose: str | None = None) -> NetworkTarget:
    """Return the target that an argument names.

    Parameters
    ----------
    target : NetworkTarget, Config, NetworkCoreConfig, str or path
        A NetworkTarget; a Config; a NetworkCoreConfig; the path of a TOML file of Config fields (it
        ends in ``.toml``), with a table ``[network_core]`` for a network core; the path of a board
        file (``.py``); or the name of a board, as ``weft build`` knows it. ``ulx3s-85f-networks``
        is the network core of the board ``ulx3s-85f``.
    purpose : str, optional
        The board's network core, as for ``weft build --for``: ``networks``, ``batch1``.

    Raises
    ------
    ModelError
        For another type, an unknown board, or if the board packages are not installed.
    weft.config.ConfigError
        If the TOML file is not valid.
    """
    named = isinstance(target, str | os.PathLike) and not os.fspath(target).endswith(".toml")
    if purpose is not None and not named:
        raise ModelError(f"{purpose!r} must be for a board, not for another target")
    if isinstance(target, NetworkTarget):
        return _of_networks(target)
    if isinstance(target, Design):
        return NetworkTarget(target.array.name, target)
    if not isinstance(target, str | os.PathLike):
        rule = "a board, a Config, a NetworkCoreConfig or a TOML file"
        raise ModelError(f"target must be {rule}, not {target!r}")
    text = os.fspath(target)
    if text.endswith(".toml"):
        return _of_networks(target_of_file(text))
    return _of_networks(board_target(text, purpose))


def _of_networks(target):
    """The target, unchanged; ModelError if its core is one for language models."""
    if target.kind == LANGUAGE:
        raise ModelError(
            f"{target.name} has a {LANGUAGE}, which runs language models only, not networks"
        )
    return target


def target_of_file(path) -> NetworkTarget:
    """Return the target of a TOML file: a network core if it has a table ``[network_core]``, a
    language core if it has a table ``[language_core]``.

    Raises ConfigError if the file is not valid.
    """
    name = os.path.basename(path).removesuffix(".toml")
    return NetworkTarget(name, design_from_toml(path, language=True))


def board_cores() -> list[NetworkTarget]:
    """Return the network cores of all boards, equal ones once, the smallest memory first."""
    found = {}
    for name, facts in _known().items():
        if "network_core" in facts["config"]:
            target = _known_target(name)
            found.setdefault(target.config.hash, target)
    return sorted(found.values(), key=lambda target: target.config.memory_bytes)


@functools.cache
def _known():
    """The cores of all boards; `tools.board_targets` writes the file.

    A board needs Amaranth, which takes longer to import than a report, and which a PC beside a
    board may lack.
    """
    file = resources.files("weft.models").joinpath("board_targets.json")
    return json.loads(file.read_text(encoding="utf-8"))


def _known_target(name):
    facts = _known()[name]
    memory = ProgramTiming.from_dict(facts["memory"]) if "memory" in facts else None
    return NetworkTarget(
        name, design_from_dict(facts["config"]), facts["clock"], facts["baud"], memory
    )


def board_target(name: str, purpose: str | None) -> NetworkTarget:
    """Return the target of a board, as `target_of`, which may be a language core, too."""
    full = name if purpose is None else f"{name}-{purpose}"
    if full in _known():
        return _known_target(full)
    try:
        from weft.boards.board import BoardError
        from weft.boards.catalog import find, load
    except ModuleNotFoundError as error:
        raise ModelError(
            f"the board {name!r} needs the package {error.name}; {to_install(extra='hw')}; or give"
            " a TOML file of Config fields (--config)"
        ) from error
    if os.path.isfile(name) and not name.endswith(".py"):
        rule = "the name of a board, a board file (.py) or a file of Config fields (.toml)"
        raise ModelError(f"board must be {rule}, not the file {name!r}")
    try:
        board = load(name) if name.endswith(".py") else find(name)
        board = board.built_for(purpose) if purpose is not None else board
    except BoardError as error:
        raise ModelError(str(error)) from error
    name = board.name if purpose is None else f"{board.name}-{purpose}"
    return NetworkTarget(
        name, board.config, board.clock, board.baud, board.memory, placed=board.placed
    )
