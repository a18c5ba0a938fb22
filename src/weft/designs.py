"""Makes Designs of both kinds: from fields, from a TOML file, and from another Design.

The fields of a network core are the ones of its array, and a table ``network_core`` with its own,
as a TOML file has them::

    rows = 8
    cols = 8

    [network_core]
    words = 4096

A language core has a table ``language_core`` with all of its fields.

This is the one module that tests which class a Design has. Commands get theirs from:

===================================== =============================================================
`weft.cli.options.config_of`          the Config of the options and the file of a command
`weft.cli.options.any_config_of`      the same, or a NetworkCoreConfig
`weft.cli.options.changed_config`     a Design with the fields that the options change
`weft.models.target.target_of`        the target of a network: a board, a file or a Design
`weft.cli.build.designed_board`       a board with the Design of the options
===================================== =============================================================
"""

import contextlib
import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.config import Config, ConfigError
from weft.language_core.config import LanguageCoreConfig
from weft.network_core.config import NetworkCoreConfig

__all__ = [
    "NETWORK_CORE_FIELDS", "chosen_fields", "design_from_dict", "design_from_toml",
    "replace", "to_dict", "to_toml",
]

TABLE = "network_core"
LANGUAGE_TABLE = "language_core"
NETWORK_CORE_FIELDS = tuple(
    f.name for f in dataclasses.fields(NetworkCoreConfig) if f.name != "array"
)

AnyConfig = Config | NetworkCoreConfig | LanguageCoreConfig


def design_from_dict(values: Mapping[str, Any]) -> AnyConfig:
    """Return the Design of `to_dict`. Raises ConfigError for invalid values and unknown names."""
    fields = dict(values)
    table = fields.pop(TABLE, None)
    array = Config.from_dict(fields)
    if table is None:
        return array
    if not isinstance(table, dict):
        raise ConfigError(f"{TABLE} must be a table, not {table!r:.60}")
    return NetworkCoreConfig.from_dict(array, table)


def design_from_toml(path, *, language: bool = False, **overrides) -> AnyConfig:
    """Return the Config of a TOML file; the NetworkCoreConfig if it has a table ``network_core``,
    and with ``language`` the LanguageCoreConfig if it has a table ``language_core``.

    ``overrides`` replace values of the file: of the table if it can have them, or else of the
    array. Raises ConfigError for a missing file, a file that is not TOML, and invalid values.
    """
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return Config.from_toml(path)  # raises ConfigError with the reason
    if "chip" in values:
        raise ConfigError(
            f"{path}: the table [chip] has the name [{TABLE}] now;"
            f" sed -i 's/\\[chip\\]/[{TABLE}]/' {path} renames it"
        )
    if LANGUAGE_TABLE in values:
        if not language:
            raise ConfigError(
                f"{path}: the table [{LANGUAGE_TABLE}] is for a simulated core only: weft serve"
                " board, weft selftest board, and weft run --on sim or --on board with a language"
                " model"
            )
        return _language_core(path, values, overrides)
    if TABLE not in values:
        return Config.from_toml(path, **overrides)
    own = {name: overrides.pop(name) for name in NETWORK_CORE_FIELDS if name in overrides}
    if isinstance(values[TABLE], dict):
        values[TABLE] |= own
    try:
        return design_from_dict(values | overrides)
    except ValueError as error:  # ConfigError, or a number with too many digits to print
        raise ConfigError(f"{path}:\n{error}") from error


def _language_core(path, values, overrides):
    """The LanguageCoreConfig of a file."""
    known = [f.name for f in dataclasses.fields(LanguageCoreConfig)]
    table = values.pop(LANGUAGE_TABLE)
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {LANGUAGE_TABLE} must be a table, not {table!r:.60}")
    for name in (*values, *overrides):
        raise ConfigError(f"{path}: {name} must not be with the table [{LANGUAGE_TABLE}]")
    for name in set(table) - {*known}:
        raise ConfigError(
            f"{path}: {name} is not a field of [{LANGUAGE_TABLE}]; the fields are"
            f" {', '.join(known)}"
        )
    for name, value in table.items():
        kind = _LANGUAGE_FIELDS.get(name, int)
        if type(value) is not kind:
            raise ConfigError(f"{path}: {name} must be {_KIND_NAMES[kind]}, not {value!r:.60}")
    try:
        return LanguageCoreConfig(**table)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


_LANGUAGE_FIELDS = {"target": str, "microprogram": bool, "int4": bool}
_KIND_NAMES = {str: "a text", int: "an integer", bool: "true or false"}


def to_dict(design: AnyConfig, *, chosen: bool = False) -> dict[str, Any]:
    """Return all fields; with ``chosen`` only the ones of the array that define it."""
    array = chosen_fields(design.array) if chosen else dataclasses.asdict(design.array)
    if isinstance(design, NetworkCoreConfig):
        array[TABLE] = {name: getattr(design, name) for name in NETWORK_CORE_FIELDS}
    return array


def to_toml(design: AnyConfig, *, chosen: bool = False) -> str:
    """Return the text of a file for ``--config``, with the fields of `to_dict`."""
    fields = to_dict(design, chosen=chosen)
    table = fields.pop(TABLE, None)
    text = _lines(fields)
    return text if table is None else f"{text}\n[{TABLE}]\n{_lines(table)}"


def replace(design, **fields):
    """Return ``design`` with other values for some fields.

    Fields of a Config that have their default value follow from the new values. If there are fewer
    columns, ``dsp_cols`` and ``ram_cols`` are at most as many. A field of a NetworkCoreConfig is
    its own if it has one of this name, or else a field of its array.
    """
    if isinstance(design, NetworkCoreConfig):
        own = {name: fields.pop(name) for name in NETWORK_CORE_FIELDS if name in fields}
        return dataclasses.replace(design, array=replace(design.array, **fields), **own)
    kept = chosen_fields(design)
    left = fields.get("cols", design.cols)
    for name in ("dsp_cols", "ram_cols"):
        if name in kept:
            kept[name] = max(0, min(kept[name], left))
        left -= fields.get(name, kept.get(name, 0))
    return Config.from_dict(kept | fields)


def chosen_fields(config: Config) -> dict[str, int | str | bool]:
    """The fields that define ``config``; all others have the values that follow from them."""
    chosen = dataclasses.asdict(config)
    for name in list(chosen):
        rest = {other: value for other, value in chosen.items() if other != name}
        with contextlib.suppress(ConfigError):
            chosen = rest if Config.from_dict(rest) == config else chosen
    return chosen


def _lines(fields):
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
