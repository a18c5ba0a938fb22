"""Flags for a Config: a TOML file, and a flag for every field on top of it."""

import dataclasses

from weft.config import Config

__all__ = ["add_config", "config_of"]


def add_config(parser):
    """Give ``parser`` ``--config FILE`` and a flag a field."""
    group = parser.add_argument_group(
        "the design", "fields of its Config; a flag goes over the file, the file over the default"
    )
    group.add_argument("--config", metavar="FILE", help="TOML file of field = value lines")
    for f in dataclasses.fields(Config):
        rule = f.metadata
        text = f"{rule['text']}; {_range(rule)}, default {f.default}"
        kind = str if "choices" in rule else int
        flag = "--" + f.name.replace("_", "-")
        group.add_argument(flag, dest=f.name, type=kind, metavar=kind.__name__.upper(), help=text)


def config_of(args) -> Config:
    """The Config that parsed flags describe; ConfigError where there is none."""
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(Config)}
    given = {name: value for name, value in given.items() if value is not None}
    return Config.from_toml(args.config, **given) if args.config else Config.from_dict(given)


def _range(rule):
    if "choices" in rule:
        return " or ".join(rule["choices"])
    low, high = rule["range"]
    return f"{'a power of two, ' if rule.get('power') else ''}{low} to {high}"
