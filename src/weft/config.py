"""The one description of an accelerator: every block, tool and driver starts from a `Config`."""

import dataclasses
import hashlib
import json
import operator
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from weft.formats import FORMATS, Format
from weft.hints import did_you_mean

__all__ = ["PAGE_WORDS", "Config", "ConfigError"]

DSP_TARGETS = "ecp5", "ice40up"  # those with DSP blocks
_LONGEST = 100  # characters of a value in a message
PAGE_WORDS = 16  # operand words a page; the unit in which operand regions are addressed


class ConfigError(ValueError):
    """A Config that cannot be; the message lists every problem at once."""


def _size(low, high, default, text):
    return field(default=default, metadata={"range": (low, high), "text": text})


def _power(low, high, default, text, zero=False):
    rule = {"range": (low, high), "power": True, "zero": zero, "text": text}
    return field(default=default, metadata=rule)


def _words(text):
    return _power(2 * PAGE_WORDS, 1 << 16, 4096, text)


def _choice(default, choices, text):
    return field(default=default, metadata={"choices": choices, "text": text})


def _flag(default, text):
    return field(default=default, metadata={"flag": True, "text": text})


def _by_dtype(int8, bf16, one):
    """The field ``one`` with a default for each dtype: None until a Config has taken it."""
    rule = {**one.metadata, "by_dtype": {"int8": int8, "bf16": bf16}}
    return field(default=None, metadata=rule)


@dataclass(frozen=True, kw_only=True)
class Config:
    """An accelerator: ``rows * cols * depth`` MAC/cycle, its buffers and its streams.

    Each field's range and meaning stand in its metadata; ``weft info --help`` prints them. Where
    the default depends on ``dtype``, None asks for it; the field then holds it. Integers may be of
    any type with ``__index__``, such as numpy's; the fields then hold plain ones.

    Raises
    ------
    ConfigError
        With one line a problem, all problems in one message.
    """

    rows: int = _by_dtype(8, 4, _size(
        1, 64, None, "rows of processing elements; rows of C in a tile"
    ))
    cols: int = _by_dtype(8, 4, _size(
        1, 64, None, "columns of processing elements; columns of C in a tile"
    ))
    depth: int = _size(1, 64, 1, "operand pairs a PE takes a cycle")
    hop: int = _size(1, 64, 4, "PEs, each way, that share one operand register")
    target: str = _choice(
        "generic", ("generic", "ecp5", "ice40hx", "ice40up"),
        "what it is built for: its leaves and memories; generic: any FPGA",
    )
    multiplier: str = _choice(
        "auto", ("auto", "plain", "fip"),
        "how a PE multiplies; auto: fip where the target has leaves and depth is even, else plain",
    )
    dsp_cols: int = field(default=None, metadata={
        "range": (0, 64), "open": "all where the target has DSP blocks",
        "text": "columns, from the left, of PEs that multiply in DSP blocks; the others in logic",
    })
    drain: str = _choice(
        "overlapped", ("overlapped", "folded"),
        "how results leave the array: beside the next tile, or in its way but in less logic",
    )
    dtype: str = _choice("int8", tuple(FORMATS), "type of A and B")
    flush_subnormals: bool = _flag(False, "subnormal operands, sums and results count as zeros")
    a_words: int = _words("A buffer, in words of rows * depth values")
    b_words: int = _words("B buffer, in words of cols * depth values")
    c_words: int = _by_dtype(0, 1024, _power(
        2 * PAGE_WORDS, 1 << 16, None, "C buffer, in words of cols sums; 0: sums start from 0 only",
        zero=True,
    ))
    lanes: int = _power(1, 64, 4, "results a cycle on their way out of the array")
    requantize: str = _by_dtype("tflite", "none", _choice(
        None, ("none", "tflite", "single", "onnx"), "how int8 results are rounded, if at all"
    ))
    scale_cycles: int = _power(
        1, 32, 1, "cycles a lane takes to scale an int8 result: the more, the smaller"
    )
    activation: str = _by_dtype("table", "clamp", _choice(
        None, ("none", "table", "clamp"), "the end: a table over int8 results, limits of bf16 ones"
    ))
    b_zero_point: str = _choice("none", ("none", "column"), "zero points of B, in int8 results")
    bytes_in: int = _power(1, 64, 16, "bytes a cycle of the command stream")
    bytes_out: int = _power(1, 64, 16, "bytes a cycle of the result stream")
    jobs: int = _power(2, 16, 8, "jobs accepted and not yet finished, at most")

    def __post_init__(self):
        fields = dataclasses.fields(self)
        given = {f.name: _plain(getattr(self, f.name)) for f in fields}
        for name, value in given.items():
            # None for any other type: the rules below compare fields, and == of an array is none.
            object.__setattr__(self, name, value if isinstance(value, (int, str)) else None)
        if self.dtype in tuple(FORMATS):
            for f in fields:
                if "by_dtype" in f.metadata and getattr(self, f.name) is None:
                    object.__setattr__(self, f.name, f.metadata["by_dtype"][self.dtype])
        self._resolve()
        wrong = {f.name: list(_check(f, given[f.name])) for f in fields}
        problems = [text for texts in wrong.values() for text in texts]
        if not wrong["dtype"]:
            problems += [
                f"{name} must be {rule} with dtype {self.dtype!r}, not {getattr(self, name)!r}"
                for name, rule, may in _RULES[self.dtype]
                if not wrong[name] and not may(getattr(self, name))
            ]
        if self.multiplier == "fip":
            if _is_integer(self.depth) and self.depth % 2:
                problems.append(f"depth must be even with multiplier 'fip', not {self.depth}")
            if _is_integer(self.bytes_in) and self.bytes_in < 2:
                problems.append(
                    f"bytes_in must be 2 or more with multiplier 'fip', not {self.bytes_in}"
                )
        if not wrong["dsp_cols"] and None not in (self.cols, self.dsp_cols) and not wrong["cols"]:
            most = self.cols if self.target in DSP_TARGETS else 0
            if self.dsp_cols > most:
                problems.append(
                    f"dsp_cols must be at most {most} with {self.cols} columns and target"
                    f" {self.target!r}, not {self.dsp_cols}"
                )
        if not wrong["dsp_cols"] and self.dsp_cols and self._exceeds_a_block():
            problems.append(
                "dsp_cols must be 0 with several products a PE, target 'ice40up' and multiplier"
                f" 'fip', not {self.dsp_cols}"
            )
        sizes = self.lanes, self.bytes_out
        raw = self.requantize in ("none", None)
        if not raw and all(map(_is_integer, sizes)) and sizes[0] > sizes[1]:
            problems.append(
                f"lanes must be at most bytes_out ({self.bytes_out}) unless requantize is none,"
                f" not {self.lanes}"
            )
        given = None not in (self.c_words, self.rows)
        if given and not wrong["c_words"] and not wrong["rows"] and 0 < self.c_words < self.rows:
            problems.append(f"c_words must be 0 or at least rows ({self.rows}), not {self.c_words}")
        if problems:
            raise ConfigError("\n".join(problems))

    def _resolve(self):
        """Give the fields that follow from others the values they ask for."""
        even = _is_integer(self.depth) and self.depth % 2 == 0
        if self.multiplier == "auto":
            fast = self.target != "generic" and even and self.dtype == "int8"
            object.__setattr__(self, "multiplier", "fip" if fast else "plain")
        if self.dsp_cols is None:
            blocks = self.target in DSP_TARGETS and not self._exceeds_a_block()
            object.__setattr__(self, "dsp_cols", self.cols if blocks else 0)

    def _exceeds_a_block(self):
        """Whether a PE has products that an SB_MAC16 takes one of, but more than one."""
        single = self.target == "ice40up" and self.multiplier == "fip"
        return single and _is_integer(self.depth) and self.depth > 2

    @property
    def format(self) -> Format:
        """The types of operands, sums and results."""
        return FORMATS[self.dtype]

    @property
    def mac_cell(self) -> str:
        """The name of its MAC leaf: int8 has one for each multiplier and target."""
        if self.dtype == "int8":
            own = "" if self.target == "generic" else f"_{self.target}"
            return f"{self.multiplier}{own}"
        return f"{self.dtype}_ftz" if self.flush_subnormals else self.dtype

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
        tail = "" if self.mac_cell == "plain" else f"_{self.mac_cell}"
        return f"{self.rows}x{self.cols}x{self.depth}{tail}"

    @classmethod
    def from_dict(cls, values: dict) -> "Config":
        """A Config from field values; unknown names are refused along with every other problem."""
        known = {f.name: f for f in dataclasses.fields(cls)}
        problems = [
            f"{name} is no field of a Config; the fields are {', '.join(known)}"
            f"{did_you_mean(name, known)}"
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
            # Some editors put a byte order mark in front: utf-8-sig drops it.
            values = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} must be a readable TOML file: {error}") from error
        except RecursionError as error:
            text = f"{path} must be a readable TOML file: it is nested too deep"
            raise ConfigError(text) from error
        try:
            return cls.from_dict({**values, **overrides})
        except ValueError as error:  # ConfigError, and of a number too long to be printed
            raise ConfigError(f"{path}:\n{error}") from error


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value):
    """A plain int for an integer of any type but bool; else the value itself."""
    if isinstance(value, bool):
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        return value


def _shown(value):
    """The value as one line of text, cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # thousands of digits, or of lists in each other
        return f"a huge {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _check(f, value):
    """Problems of one field's value, as text."""
    rule = f.metadata
    if value is None and ("by_dtype" in rule or "open" in rule):  # what it follows is wrong
        return
    if "choices" in rule:
        if not isinstance(value, str) or value not in rule["choices"]:
            yield f"{f.name} must be one of {', '.join(rule['choices'])}, not {_shown(value)}"
        return
    if "flag" in rule:
        if not isinstance(value, bool):
            yield f"{f.name} must be True or False, not {_shown(value)}"
        return
    if not _is_integer(value):
        yield f"{f.name} must be an integer, not {_shown(value)}"
        return
    low, high = rule["range"]
    power, zero = rule.get("power", False), rule.get("zero", False)
    if zero and not value:
        return
    if not low <= value <= high or power and value & (value - 1):
        kind = "0 or " * zero + ("a power of two in " if power else "in ")
        yield f"{f.name} must be {kind}{low}..{high}, not {_shown(value)}"


# What each dtype asks of other fields: the field, the rule, and whether a value keeps it.
_RULES = {
    "int8": (
        ("flush_subnormals", "False", lambda flush: not flush),
        ("c_words", "0", lambda words: words == 0),
        ("activation", "none or table", lambda kind: kind != "clamp"),
    ),
    "bf16": (
        ("depth", "1", lambda depth: depth == 1),
        ("multiplier", "plain", lambda kind: kind == "plain"),
        ("drain", "overlapped", lambda kind: kind == "overlapped"),
        ("requantize", "none", lambda mode: mode == "none"),
        ("scale_cycles", "1", lambda cycles: cycles == 1),
        ("activation", "none or clamp", lambda kind: kind != "table"),
        ("b_zero_point", "none", lambda kind: kind == "none"),
        ("bytes_in", "2 or more", lambda count: count >= 2),
    ),
}
