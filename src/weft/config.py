"""The one description of an accelerator: every block, tool and driver starts from a `Config`."""

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Config", "ConfigError", "PAGE_WORDS"]

PAGE_WORDS = 16  # operand words a page; the unit in which operand regions are addressed


class ConfigError(ValueError):
    """A Config that cannot be; the message lists every problem at once."""


def _size(low, high, default, text):
    return field(default=default, metadata={"range": (low, high), "text": text})


def _power(low, high, default, text):
    return field(default=default, metadata={"range": (low, high), "power": True, "text": text})


def _words(text):
    return _power(2 * PAGE_WORDS, 1 << 16, 4096, text)


def _choice(default, choices, text):
    return field(default=default, metadata={"choices": choices, "text": text})


@dataclass(frozen=True, kw_only=True)
class Config:
    """An accelerator: ``rows * cols * depth`` MAC/cycle, its buffers and its streams.

    Each field's range and meaning stand in its metadata; ``weft info --help`` prints them.

    Raises
    ------
    ConfigError
        With one line a problem, all problems in one message.
    """

    rows: int = _size(1, 64, 8, "rows of processing elements; rows of C in a tile")
    cols: int = _size(1, 64, 8, "columns of processing elements; columns of C in a tile")
    depth: int = _size(1, 64, 1, "operand pairs a PE takes a cycle")
    hop: int = _size(1, 64, 2, "PEs, each way, that share one operand register")
    multiplier: str = _choice("plain", ("plain", "fip"), "how a PE multiplies: its MAC leaf")
    a_type: str = _choice("int8", ("int8",), "type of A")
    b_type: str = _choice("int8", ("int8",), "type of B")
    acc_type: str = _choice("int32", ("int32",), "type of the accumulator")
    a_words: int = _words("A buffer, in words of rows * depth bytes")
    b_words: int = _words("B buffer, in words of cols * depth bytes")
    lanes: int = _power(1, 64, 4, "results a cycle on their way out of the array")
    requantize: str = _choice(
        "tflite", ("none", "tflite", "single", "onnx"), "how int8 results are rounded, if at all"
    )
    activation: str = _choice("table", ("none", "table"), "a table over int8 results, at the end")
    b_zero_point: str = _choice("none", ("none", "column"), "zero points of B, in int8 results")
    bytes_in: int = _power(1, 64, 16, "bytes a cycle of the command stream")
    bytes_out: int = _power(1, 64, 16, "bytes a cycle of the result stream")
    jobs: int = _power(2, 16, 8, "jobs accepted and not yet finished, at most")

    def __post_init__(self):
        fields = dataclasses.fields(self)
        problems = [text for f in fields for text in _check(f, getattr(self, f.name))]
        if self.multiplier == "fip":
            if _is_integer(self.depth) and self.depth % 2:
                problems.append(f"depth must be even with multiplier 'fip', not {self.depth}")
            if _is_integer(self.bytes_in) and self.bytes_in < 2:
                problems.append(
                    f"bytes_in must be 2 or more with multiplier 'fip', not {self.bytes_in}"
                )
        sizes = self.lanes, self.bytes_out
        if self.requantize != "none" and all(map(_is_integer, sizes)) and sizes[0] > sizes[1]:
            problems.append(
                f"lanes must be at most bytes_out ({self.bytes_out}) unless requantize is none,"
                f" not {self.lanes}"
            )
        if problems:
            raise ConfigError("\n".join(problems))

    @property
    def peak(self) -> int:
        """MAC/cycle with every PE at work."""
        return self.rows * self.cols * self.depth

    @property
    def hash(self) -> int:
        """32 bits that tell one Config from another: SHA-256 over the sorted JSON of the fields."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    @property
    def name(self) -> str:
        """A short name fit for a folder or a file."""
        tail = "" if self.multiplier == "plain" else f"_{self.multiplier}"
        return f"{self.rows}x{self.cols}x{self.depth}{tail}"

    @classmethod
    def from_dict(cls, values: dict) -> "Config":
        """A Config from field values; unknown names are refused along with every other problem."""
        known = {f.name: f for f in dataclasses.fields(cls)}
        problems = [
            f"{name} is no field of a Config; the fields are {', '.join(known)}"
            for name in values if name not in known
        ]
        try:
            config = cls(**{name: value for name, value in values.items() if name in known})
        except ConfigError as error:
            problems.append(str(error))
        if problems:
            raise ConfigError("\n".join(problems))
        return config

    @classmethod
    def from_toml(cls, path, **overrides) -> "Config":
        """A Config from a TOML file of field values, with ``overrides`` on top.

        Raises ConfigError for a file that is not there, is no TOML, or describes no Config.
        """
        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path} must be a readable TOML file: {error}") from error
        try:
            return cls.from_dict({**values, **overrides})
        except ConfigError as error:
            raise ConfigError(f"{path}:\n{error}") from error


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _check(f, value):
    """Problems of one field's value, as text."""
    rule = f.metadata
    if "choices" in rule:
        if value not in rule["choices"]:
            yield f"{f.name} must be one of {', '.join(rule['choices'])}, not {value!r}"
        return
    if not _is_integer(value):
        yield f"{f.name} must be an integer, not {value!r}"
        return
    low, high = rule["range"]
    power = rule.get("power", False)
    if not low <= value <= high or power and value & (value - 1):
        kind = "a power of two in " if power else "in "
        yield f"{f.name} must be {kind}{low}..{high}, not {value}"
