"""Options of commands for a design, and for the transport to a core."""

import argparse
import dataclasses

from weft.cli.arguments import integer, path
from weft.cli.progress import slow_task
from weft.config import Config, ConfigError
from weft.design import PerKind
from weft.network_core.config import OPTIONS

__all__ = [
    "NAMES", "add_baud", "add_config", "add_network_core_fields", "add_transport", "any_config_of",
    "changed_config", "check_baud", "config_of", "given_config", "given_field", "open_by_name",
    "open_named",
]


# Of a NetworkCoreConfig, beside the fields of its core, and beside b_words, which a Config has,
# too.
OWN_FIELDS = {
    "words": "words of each bank of the memory; a power of two",
    "lines": "lines of the parameter buffer",
    "read_vectors": "vectors that loads, descriptors and the host read in one cycle: 1, 2, 4, 8",
    "multiply_maps": "jobs can multiply their results with another map; a multiplier a lane",
    "softmax": "a unit that computes SOFTMAX of rows of a map",
}
_OWN: PerKind[set[str]] = PerKind(product=set(), network=set(OWN_FIELDS))


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


def add_network_core_fields(parser):
    """Add ``--for``, and an option for each field that only a network core has."""
    group = parser.add_argument_group(
        "a network core", "fields of the table [network_core] of a file; they need it, or --for"
    )
    group.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="the board's network core: networks, batch1 or networks-onnx; see weft boards",
    )
    for name, text in OWN_FIELDS.items():
        flag = f"--{name.replace('_', '-')}"
        if name in OPTIONS:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        else:
            group.add_argument(flag, type=int, metavar="INT", help=text)


def changed_config(args, config):
    """The Design of a board, with the fields of ``--config`` and of the options.

    A file with a table ``[network_core]`` describes a network core. Raises ConfigError if file and
    options describe no Design, or another kind than ``--for``.
    """
    from weft.designs import design_from_toml, replace

    names = [f.name for f in dataclasses.fields(Config)]
    fields, own = (
        {name: getattr(args, name) for name in group if getattr(args, name) is not None}
        for group in (names, OWN_FIELDS)
    )
    found = config
    if args.config is None:
        found = replace(config, **fields)
    else:
        found = design_from_toml(args.config, **{"target": config.target, **fields})
    if not _OWN.of(config) <= _OWN.of(found):
        raise ConfigError(f"{args.config} must have a table [network_core]")
    for name in own:
        if name not in _OWN.of(found):
            raise ConfigError(f"{name} must be for a network core (--for), not for a product core")
    return replace(found, **own)


def given_field(args) -> str | None:
    """The first option of a Config on the command line, or ``--config``."""
    for name in ("config", *(f.name for f in dataclasses.fields(Config))):
        if getattr(args, name) is not None:
            return f"--{name.replace('_', '-')}"
    return None


def any_config_of(args):
    """The Config of the parsed options, or the NetworkCoreConfig of a file with a table
    ``[network_core]``.

    Raises ConfigError if they describe none.
    """
    from weft.designs import design_from_toml

    return config_of(args) if args.config is None else design_from_toml(
        args.config, **_given_fields(args)
    )


def config_of(args) -> Config:
    """The Config of the parsed options. Raises ConfigError if they describe none."""
    values = _given_fields(args)
    if args.config is None:
        return Config.from_dict(values)
    return Config.from_toml(args.config, **values)


def _given_fields(args):
    values = {f.name: getattr(args, f.name) for f in dataclasses.fields(Config)}
    return {name: value for name, value in values.items() if value is not None}


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


NAMES = """\
TRANSPORT is
  /dev/ttyUSB1, COM3       a board on a serial port
  usb, usb:SERIAL          a board on USB, at pins of its FPGA; with a serial number, that board
  tcp://host:port          a board shared by 'weft serve'
  uio:/dev/uio0            an IP core, through its registers in a UIO device
  mem:0x43c00000           an IP core, through its registers at a physical address
  board                    a simulated board, at the pins of its serial port
  sim                      a simulated core, at its streams
  golden                   the golden model in numpy, without hardware

The last three have the design given by the options. For the others, the options are a check: the
core must have this design.
"""
_SIMULATED = "sim", "board", "golden"


def add_transport(parser):
    """Add the argument TRANSPORT, ``--baud``, and the options of a design to ``parser``."""
    parser.add_argument(
        "transport", metavar="TRANSPORT", help="the connection to the core; see above"
    )
    add_baud(parser)
    add_config(parser)


def add_baud(parser):
    """Add the option ``--baud`` to ``parser``."""
    parser.add_argument(
        "--baud", type=integer("baud", 1), metavar="INT",
        help="baud rate of the serial port; by default, the common rates are tried",
    )


def check_baud(baud, name) -> None:
    """Raise TransportError for a baud rate of a transport that has none."""
    from weft.host.transport import TransportError

    other = name in (*_SIMULATED, "usb") or "://" in name or name[:4] in ("uio:", "mem:", "usb:")
    if baud is not None and other:
        raise TransportError(f"--baud must be for a serial port, not for {name}")


def given_config(args):
    """The Config of the options; None if no option is given and the transport needs none."""
    import dataclasses

    from weft.config import Config

    values = [getattr(args, f.name) for f in dataclasses.fields(Config)]
    empty = args.config is None and all(value is None for value in values)
    return None if empty and args.transport not in _SIMULATED else config_of(args)


def open_named(args, show):
    """Open the transport that the arguments name.

    Returns (transport, Config that the core must have or None). ``show`` reports steps that take
    long. Raises ConfigError, TransportError or ToolError.
    """
    check_baud(args.baud, args.transport)
    config = given_config(args)
    return open_by_name(args.transport, config, args.baud, show), config


def open_by_name(name, config, baud, show):
    """Open a transport; one of the simulated ones has ``config``. ``show`` as of `open_named`.

    Raises TransportError or ToolError.
    """
    from weft.host.opening import open_transport
    from weft.host.transport import TransportError

    if name in ("sim", "board"):
        from weft.sim.transport import SimBoardTransport, SimTransport

        simulated = SimTransport if name == "sim" else SimBoardTransport
        with slow_task("preparing the simulated core"):
            return simulated(config, say=show.say)
    try:
        return open_transport(name, config, baud=baud)
    except ValueError as error:
        raise TransportError(f"{error}; a simulated core is board or sim") from error
