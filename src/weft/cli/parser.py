"""The argument parser: it reports an error in one line, with the nearest valid name."""

import argparse
import re
from importlib import metadata

from weft.hints import did_you_mean

__all__ = ["Parser", "Version"]

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
        self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion}")


class Version(argparse.Action):
    """Print the version of the installed Weft, which is looked up only then, and exit."""

    def __init__(self, option_strings, dest, **options):
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"weft {metadata.version('weft')}")
        parser.exit()
