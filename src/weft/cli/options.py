"""Command-line options for a Config: a TOML file, and one option per field."""

import argparse
import dataclasses

from weft.cli.argument_types import path
from weft.config import Config

__all__ = ["add_config", "config_of"]


def add_config(parser):
    """Add ``--config FILE`` and an option for each field of a Config to ``parser``."""
    group = parser.add_argument_group(
        "the design",
        "fields of the Config; an option overrides the file, the file overrides the default",
    )
    group.add_argument(
        "--config", metavar="FILE", type=path("config"),
        help="TOML file with lines of the form field = value",
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
        text = f"{rule['text']}; {_range(rule)}; default {_default(f)}"
        group.add_argument(flag, dest=f.name, type=kind, metavar=kind.__name__.upper(), help=text)


def config_of(args) -> Config:
    """The Config of the parsed options. Raises ConfigError if they describe none."""
    values = {f.name: getattr(args, f.name) for f in dataclasses.fields(Config)}
    values = {name: value for name, value in values.items() if value is not None}
    if args.config is None:
        return Config.from_dict(values)
    return Config.from_toml(args.config, **values)


def _range(rule):
    if "choices" in rule:
        return f"one of {', '.join(rule['choices'])}"
    low, high = rule["range"]
    zero = "0 or " if rule.get("zero") else ""
    return f"{zero}{'a power of two, ' if rule.get('power') else ''}{low} to {high}"


def _default(f):
    """The default of a field as text: one value, a value per dtype, or how it is derived."""
    if "open" in f.metadata:
        return f.metadata["open"]
    by_dtype = f.metadata.get("by_dtype")
    if by_dtype is None:
        return f.default
    return ", ".join(f"{value} for {dtype}" for dtype, value in by_dtype.items())
