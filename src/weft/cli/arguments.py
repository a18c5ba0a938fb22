"""The argument parser, types of arguments, and checks of output files before a command works."""

import argparse
import math
import re
import tempfile
from importlib import metadata
from pathlib import Path

from weft.files import part_of
from weft.hints import did_you_mean

__all__ = ["Parser", "Version", "integer", "number", "output_file", "output_folder", "path"]


_MAX_LENGTH = 40  # characters of a wrong value in a message


def integer(name: str, low: int, high: int | None = None):
    """A type for `argparse`: an integer of ``low`` or more, and at most ``high`` if given."""
    rule = f"an integer of {low} or more" if high is None else f"an integer in {low}..{high}"

    def read(text):
        try:
            value = int(text) if re.fullmatch(r"-?[0-9]+", text) else None
        except ValueError:  # thousands of digits
            value = None
        if value is None or value < low or high is not None and value > high:
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


def output_folder(path) -> Path:
    """Create the folder if it does not exist.

    Raises OSError, with its name, if it cannot be created or written to.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        error.filename = str(path)  # instead of the name of the temporary file
        raise OSError(f"cannot write to the output folder: {error}") from error
    return path


def output_file(path) -> Path:
    """Check that the file can be written, without changing it; creates its folder.

    Raises OSError if the path is no regular file, or the file cannot be created.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a special file"
        raise OSError(f"output must be a file; {path} is {kind}")
    output_folder(path.parent)
    part = part_of(path)
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        error.filename = str(path)  # instead of the temporary name
        raise OSError(f"cannot write the output file: {error}") from error
    return path
