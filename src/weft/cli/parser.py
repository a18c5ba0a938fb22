"""The parser of the command: one that says in a line what is wrong, and what may be meant."""

import argparse
import re
from importlib import metadata

from weft.hints import did_you_mean

__all__ = ["Parser", "Version"]

_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """Ends with the error first, in one line, instead of after the usage text."""

    def error(self, message):
        """Say what is wrong, with the nearest choice, and where the help is; exit code 2."""
        if match := _CHOICE.search(message):
            message += did_you_mean(match[1], re.findall(r"[\w.-]+", match[2]))
        then = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{then} {self.prog} --help\n")

    def unknown(self, rest):
        """`error` of the arguments that no flag takes."""
        flags = re.findall(r"--[\w-]+", self.format_usage())
        name = rest[0].partition("=")[0]
        near = did_you_mean(name, flags) if name.startswith("--") else ""
        self.error(f"unrecognized arguments: {' '.join(rest)}{near}")


class Version(argparse.Action):
    """Say the version of the installed Weft, looked up when it is asked for, and end."""

    def __init__(self, option_strings, dest, **options):
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"weft {metadata.version('weft')}")
        parser.exit()
