"""Options of commands: for a design, a transport, an engine of tasks; and types of arguments."""

import argparse
import dataclasses
import math
import re
import sys
from importlib import metadata

from weft.cli.progress import slow_task
from weft.config import Config, ConfigError
from weft.design import LANGUAGE, PerKind
from weft.hints import did_you_mean
from weft.network_core.config import OPTIONS, TEXTS

__all__ = [
    "NAMES", "Parser", "Version", "add_baud", "add_config", "add_engine", "add_network_core_fields",
    "add_store", "add_transport", "add_workers", "any_config_of", "changed_config",
    "check_cluster", "check_connection", "config_of", "duration", "given_config", "given_field",
    "integer", "limits_of", "number", "open_by_name", "open_named", "path", "started",
]

_MAX_LENGTH = 40  # characters of a wrong value in a message


def integer(name: str, low: int | None = None, high: int | None = None):
    """A type for `argparse`: an integer, at least ``low`` and at most ``high`` if they are given.

    ``high`` needs a ``low``.
    """
    rule = "an integer"
    if low is not None:
        rule += f" of {low} or more" if high is None else f" in {low}..{high}"

    def read(text):
        try:
            value = int(text) if re.fullmatch(r"-?[0-9]+", text) else None
        except ValueError:  # thousands of digits
            value = None
        fits = value is not None and (low is None or low <= value)
        if not fits or high is not None and value > high:
            raise _wrong(name, rule, text)
        return value

    return read


def number(name: str, low: float, high: float):
    """A type for `argparse`: a number in ``low..high``, not infinite and not NaN."""

    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise _wrong(name, f"a number in {low:g}..{high:g}", text)
        return value

    return read


def path(name: str):
    """A type for `argparse`: a path. It must not be empty, which would mean the current folder."""

    def read(text):
        if not text:
            raise _wrong(name, "a path", text)
        return text

    return read


def _wrong(name, rule, text):
    shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "..."
    return argparse.ArgumentTypeError(f"{name} must be {rule}, not {shown!r}")


_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that prints an error in one line, without the usage text."""

    def error(self, message):
        """Print the error, the nearest valid choice, and a pointer to the help; exit code 2."""
        if match := _CHOICE.search(message):
            message += did_you_mean(match[1], re.findall(r"[\w.-]+", match[2]))
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{see} {self.prog} --help\n")

    def print_help(self, file=None):
        """Print the help; argparse would ignore the error of a full disk."""
        print(self.format_help(), end="", file=file)

    def exit(self, status=0, message=None):
        """Exit, when the output has what was printed; OSError if it has no space."""
        if sys.stdout is not None:
            sys.stdout.flush()
        super().exit(status, message)

    def unknown(self, rest):
        """Report the arguments ``rest``, which no option accepts."""
        options = re.findall(r"--[\w-]+", self.format_usage())
        name = rest[0].partition("=")[0]
        suggestion = did_you_mean(name, options) if name.startswith("--") else ""
        if "--board" in options and not name.startswith("-"):
            from weft.boards.catalog import BOARDS

            if name in BOARDS:
                suggestion = f"; did you mean --board {name}?"
        self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion}")


class Version(argparse.Action):
    """Print the version of the installed Weft, which is looked up only then, and exit."""

    def __init__(self, option_strings, dest, **options):
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"weft {metadata.version('weft')}")
        parser.exit()


_TLS = {
    "ca": "certificate of the authority", "cert": "certificate of this user",
    "key": "private key of this user",
}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_engine(parser, store: str) -> None:
    """Add the options of the engine and of its limits, and ``--store`` with its default file."""
    group = parser.add_argument_group("the engine")
    add_workers(group)
    group.add_argument(
        "--minutes", metavar="NUM", type=number("minutes", 0.01, 1e5), default=60.0,
        help="time limit of a tool run; default 60",
    )
    group.add_argument(
        "--memory", metavar="GIB", type=number("memory", 0.1, 1e4), default=4.0,
        help="memory limit of a tool in GiB; default 4",
    )
    add_store(group, store)


def add_workers(parser) -> None:
    """Add ``--cluster``, its certificates, and ``--jobs``."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", type=_address,
        help="scheduler of dask.distributed: tls://host:8786, or tcp://host:8786 without a key;"
             " default: workers on this machine",
    )
    for name, text in _TLS.items():
        parser.add_argument(
            f"--tls-{name}", metavar="FILE", type=path(f"tls-{name}"),
            help=f"{text} of a cluster at tls://",
        )
    parser.add_argument(
        "--jobs", metavar="INT", type=integer("jobs", 1, 9999),
        help="tools that run at once on this machine; default as many as cores and memory allow",
    )


def _address(text):
    if not re.fullmatch(r"(tls|tcp)://(\[[^\[\]/]+\]|[^\[\]/:]+):\d{1,5}", text):
        raise argparse.ArgumentTypeError(
            f"cluster must be tls://host:port or tcp://host:port, not {text!r}"
        )
    return text


def add_store(parser, store: str) -> None:
    """Add ``--store``."""
    parser.add_argument(
        "--store", metavar="FILE", type=path("store"),
        help=f"the file that keeps all outcomes; default {store} in Weft's build folder",
    )


def duration(text: str) -> float:
    """Seconds of a budget: ``90s``, ``30m``, ``2h``, ``1d``."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smhd])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"budget must be a time as 90s, 30m or 2h, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def limits_of(args):
    """The `RunLimits` of the arguments."""
    from weft.tasks.program import RunLimits

    return RunLimits(60 * args.minutes, int(args.memory * 2**30))


def check_cluster(args) -> None:
    """Check the options of a cluster before any work; warn of one that needs no key.

    Raises EngineError or OSError, as the certificates are needed.
    """
    if _security(args) is None and args.cluster:
        print(
            f"weft: warning: {args.cluster} has no key: any host that reaches the scheduler can run"
            " code on it, on its workers and in this command; use tls:// (docs/explore.md)",
            file=sys.stderr, flush=True,
        )


def started(work, args, show):
    """The engine of the arguments, with every machine set up; says where it runs."""
    from weft.tasks.engine import Engine

    engine = Engine(work, args.cluster, workers=args.jobs, security=_security(args))
    try:
        place = f"at {engine.address}; {engine.dashboard}" if args.cluster else "in this process"
        show.say(f"engine: {engine.workers} workers {place}")
        with show.task("preparing the tools"):
            engine.set_up()
    except BaseException:
        engine.close()
        raise
    return engine


def _security(args):
    """The certificates of the arguments; None for an address that uses none."""
    files = {f"--tls-{name}": getattr(args, f"tls_{name}") for name in _TLS}
    given = [name for name, file in files.items() if file is not None]
    if not given and args.cluster is None:
        return None
    from weft.tasks.engine import EngineError, security_of

    if not (args.cluster or "").startswith("tls:"):
        if given:
            raise EngineError(f"{given[0]} must be with --cluster tls://host:port")
        return None
    missing = [name for name in files if name not in given]
    if missing:
        raise EngineError(f"{args.cluster} needs {', '.join(missing)} (docs/explore.md)")
    return security_of(*files.values())


# Options for the fields of a NetworkCoreConfig that a Config has not; b_words is a field of both. A
# program memory comes with a board.
OWN_FIELDS = {
    name: text for name, text in TEXTS.items() if name not in ("b_words", "program_words")
} | {
    "words": f"{TEXTS['words']}; a power of two",
    "read_vectors": f"{TEXTS['read_vectors']}: 1, 2, 4 or 8",
}
_OWN: PerKind[set[str]] = PerKind(product=set(), network=set(OWN_FIELDS), language=set())


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
        kind, metavar = (str, "STR") if "choices" in rule else (integer(f.name), "INT")
        text = f"{rule['text']}; {_range(rule)}; default {_default(f)}"
        group.add_argument(flag, dest=f.name, type=kind, metavar=metavar, help=text)


def add_network_core_fields(parser):
    """Add ``--for``, and an option for each field that only a network core has."""
    group = parser.add_argument_group(
        "a network core", "fields of the table [network_core] of a file; they need it, or --for"
    )
    group.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="the board's network core: networks, networks-fast, networks-sdram, batch1 or"
        " networks-onnx; or its language core: language; see weft boards",
    )
    for name, text in OWN_FIELDS.items():
        flag = f"--{name.replace('_', '-')}"
        if name in OPTIONS:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        else:
            group.add_argument(flag, type=integer(name), metavar="INT", help=text)


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
    if config.kind == LANGUAGE:
        given = [*fields, *own, *(["config"] if args.config is not None else [])]
        if given:
            raise ConfigError(
                f"--{given[0].replace('_', '-')} must not be with a language core, whose design is"
                " the one of the board"
            )
        return config
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


def any_config_of(args, *, language: bool = False):
    """The Config of the parsed options, or the NetworkCoreConfig of a file with a table
    ``[network_core]``; with ``language`` also the LanguageCoreConfig of a table
    ``[language_core]``.

    Raises ConfigError if they describe none.
    """
    from weft.designs import design_from_toml

    return config_of(args) if args.config is None else design_from_toml(
        args.config, language=language, **_given_fields(args)
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


def check_connection(name, baud) -> None:
    """Raise TransportError for a name of no transport, or a baud rate of one that has none."""
    from weft.host.opening import check_name
    from weft.host.transport import TransportError

    if name not in _SIMULATED:
        try:
            check_name(name)
        except ValueError as error:
            raise TransportError(f"{error}; a simulated core is board or sim") from error
    other = name in (*_SIMULATED, "usb") or "://" in name or name[:4] in ("uio:", "mem:", "usb:")
    if baud is not None and other:
        raise TransportError(f"--baud must be for a serial port, not for {name}")


def given_config(args, read=config_of):
    """The Config of the options, or what ``read`` makes of them: `any_config_of`.

    None if no option is given and the transport needs none.
    """
    import dataclasses

    from weft.config import Config

    values = [getattr(args, f.name) for f in dataclasses.fields(Config)]
    empty = args.config is None and all(value is None for value in values)
    return None if empty and args.transport not in _SIMULATED else read(args)


def open_named(args, show, read=config_of):
    """Open the transport that the arguments name.

    Returns (transport, Config that the core must have or None). ``show`` reports steps that take
    long; ``read`` is as of `given_config`. Raises ConfigError, TransportError or ToolError.
    """
    check_connection(args.transport, args.baud)
    config = given_config(args, read)
    return open_by_name(args.transport, config, args.baud, show), config


def open_by_name(name, config, baud, show):
    """Open a transport; one of the simulated ones has ``config``. ``show`` as of `open_named`.

    Raises TransportError or ToolError.
    """
    from weft.host.opening import open_transport

    if name in ("sim", "board"):
        from weft.sim.transport import SimBoardTransport, SimTransport

        simulated = SimTransport if name == "sim" else SimBoardTransport
        with slow_task("preparing the simulated core"):
            return simulated(config, say=show.say)
    return open_transport(name, config, baud=baud)
