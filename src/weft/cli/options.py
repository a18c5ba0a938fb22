"""Flags for a Config: a TOML file, and a flag for every field on top of it."""

import argparse
import dataclasses

from weft.cli.argument_types import path
from weft.config import Config

__all__ = ["add_config", "config_of"]


def add_config(parser):
    """Give ``parser`` ``--config FILE`` and a flag a field."""
    group = parser.add_argument_group(
        "the design", "fields of its Config; a flag goes over the file, the file over the default"
    )
    group.add_argument(
        "--config", metavar="FILE", type=path("config"), help="TOML file of field = value lines"
    )
    for f in dataclasses.fields(Config):
        rule = f.metadata
        flag = "--" + f.name.replace("_", "-")
        if "flag" in rule:
            text = f"{rule['text']}; default {'yes' if f.default else 'no'}"
            group.add_argument(
                flag, dest=f.name, action=argparse.BooleanOptionalAction, default=None, help=text
            )
            continue
        kind = str if "choices" in rule else int
        text = f"{rule['text']}; {_range(rule)}, default {_default(f)}"
        group.add_argument(flag, dest=f.name, type=kind, metavar=kind.__name__.upper(), help=text)


def config_of(args) -> Config:
    """The Config that parsed flags describe; ConfigError where there is none."""
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(Config)}
    given = {name: value for name, value in given.items() if value is not None}
    if args.config is None:
        return Config.from_dict(given)
    return Config.from_toml(args.config, **given)


def _range(rule):
    if "choices" in rule:
        return " or ".join(rule["choices"])
    low, high = rule["range"]
    zero = "0 or " if rule.get("zero") else ""
    return f"{zero}{'a power of two, ' if rule.get('power') else ''}{low} to {high}"


def _default(f):
    """The default of a field; that of each dtype where they differ; in words if it follows."""
    if "open" in f.metadata:
        return f.metadata["open"]
    by_dtype = f.metadata.get("by_dtype")
    if by_dtype is None:
        return f.default
    return ", ".join(f"{value} of {dtype}" for dtype, value in by_dtype.items())
