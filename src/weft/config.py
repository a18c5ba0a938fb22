"""`Config`: the parameters of an accelerator, from which every block, tool and driver starts."""

import dataclasses
import hashlib
import json
import operator
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from weft.design import PRODUCT
from weft.dtypes import DTYPES, DType
from weft.hints import did_you_mean
from weft.mac_cells import MAC_CELLS, MULTIPLIERS, MacCell
from weft.registry import Choices
from weft.targets import TARGETS, Target

__all__ = ["PAGE_WORDS", "Config", "ConfigError"]

_MAX_SHOWN = 100  # characters of a value in a message
PAGE_WORDS = 16  # operand words in a page, the unit in which headers address operand buffers


class ConfigError(ValueError):
    """An invalid Config. The message lists all problems, one in each line."""


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


def _optional(low, high, absent, text):
    """A number; ``absent`` is the description of None."""
    return field(default=None, metadata={"range": (low, high), "open": absent, "text": text})


class _Defaults(Mapping[str, Any]):
    """The defaults of a field, by the name of each data type."""

    def __init__(self, name: str):
        self._name = name

    def __getitem__(self, dtype: str) -> Any:
        return DTYPES[dtype].defaults[self._name]

    def __iter__(self) -> Iterator[str]:
        return iter(DTYPES)

    def __len__(self) -> int:
        return len(DTYPES)


def _by_dtype(name, spec):
    """The field ``spec`` with a default for each data type; None selects that default."""
    return field(default=None, metadata={**spec.metadata, "by_dtype": _Defaults(name)})


@dataclass(frozen=True, kw_only=True)
class Config:
    """Parameters of an accelerator of ``rows * cols * depth`` MAC/cycle.

    The metadata of each field has its range and its help text; ``weft info --help`` prints them.
    Some defaults depend on ``dtype``: None selects such a default, and the field then holds it.
    Integers of any type with ``__index__`` (numpy's, for example) are converted to int.

    Raises
    ------
    ConfigError
        For an invalid value or combination of values; one line for each problem.
    """

    kind: ClassVar[str] = PRODUCT

    rows: int = _by_dtype("rows", _size(
        1, 64, None, "rows of processing elements; rows of C in a tile"
    ))
    cols: int = _by_dtype("cols", _size(
        1, 64, None, "columns of processing elements; columns of C in a tile"
    ))
    depth: int = _size(1, 64, 1, "operand pairs that each PE multiplies per cycle")
    hop: int = _size(1, 64, 4, "adjacent PEs, in each direction, that share one operand register")
    target: str = _choice(
        "generic", Choices(lambda: list(TARGETS)),
        "FPGA family that MAC cells and memories are built for. generic: any FPGA",
    )
    multiplier: str = _choice(
        "auto", MULTIPLIERS,
        "plain: one multiplier per pair. fip: fast inner product, one multiplier per two pairs."
        " auto: fip with an even depth, if it suits the FPGA family",
    )
    dsp_cols: int = _optional(
        0, 64, "all columns if the target has DSP blocks",
        "columns of PEs, from the left, that use DSP blocks; the other columns use logic",
    )
    ram_cols: int = _size(
        0, 64, 0, "columns of PEs that read squares from block RAM instead of multiplying in logic"
    )
    drain: str = _choice(
        "overlapped", ("overlapped", "folded"),
        "overlapped: drain while the next tile computes. folded: drain through the accumulators;"
        " less logic, but the array stalls",
    )
    dtype: str = _choice("int8", Choices(lambda: list(DTYPES)), "data type of A and B")
    flush_subnormals: bool = _flag(False, "replace subnormal operands, sums and results by zero")
    a_words: int = _words("size of the A buffer in words; a word has rows * depth values")
    b_words: int = _words("size of the B buffer in words; a word has cols * depth values")
    c_words: int = _by_dtype("c_words", _power(
        2 * PAGE_WORDS, 1 << 16, None,
        "size of the C buffer in words; a word has cols sums. 0: no buffer, sums start from 0",
        zero=True,
    ))
    lanes: int = _power(1, 64, 4, "results per cycle from the result buffer to the result stream")
    requantize: str = _by_dtype("requantize", _choice(
        None, ("none", "tflite", "single", "onnx"),
        "rounding mode of int8 results. none: results are sums only",
    ))
    scale_cycles: int = _power(
        1, 32, 1, "cycles per result in each requantization lane. Larger values use less area"
    )
    activation: str = _by_dtype("activation", _choice(
        None, ("none", "table", "clamp"),
        "last step of the epilogue. table: 256-entry lookup of int8 results. clamp: limits of bf16"
        " results",
    ))
    b_zero_point: str = _choice(
        "none", ("none", "column"), "zero points of B. column: one for each column, int8 results"
    )
    bytes_in: int = _power(1, 64, 16, "bytes per cycle of the command stream")
    bytes_out: int = _power(1, 64, 16, "bytes per cycle of the result stream")
    jobs: int = _power(2, 16, 8, "maximum number of jobs accepted and not finished")

    def __post_init__(self):
        fields = dataclasses.fields(self)
        values = {f.name: _plain(getattr(self, f.name)) for f in fields}
        for name, value in values.items():
            # None for any other type: the rules below compare fields, and an array's == is no bool.
            object.__setattr__(self, name, value if isinstance(value, (int, str)) else None)
        if self.dtype in DTYPES:
            for f in fields:
                if "by_dtype" in f.metadata and getattr(self, f.name) is None:
                    object.__setattr__(self, f.name, f.metadata["by_dtype"][self.dtype])
        self._resolve()
        errors = {f.name: list(_check(f, values[f.name])) for f in fields}
        problems = [text for texts in errors.values() for text in texts]
        if not errors["dtype"]:
            problems += [
                f"{name} must be {rule} with dtype {self.dtype!r}, not {getattr(self, name)!r}"
                for name, rule, is_allowed in self.data_type.rules
                if not errors[name] and not is_allowed(getattr(self, name))
            ]
        if self.multiplier == "fip":
            if _is_integer(self.depth) and self.depth % 2:
                problems.append(f"depth must be even with multiplier 'fip', not {self.depth}")
            if _is_integer(self.bytes_in) and self.bytes_in < 2:
                problems.append(
                    f"bytes_in must be 2 or more with multiplier 'fip', not {self.bytes_in}"
                )
        chosen = not any(errors[name] for name in ("dtype", "multiplier", "target"))
        if chosen and self.mac_cell not in MAC_CELLS:
            problems.append(
                f"multiplier must be one with a MAC cell for dtype {self.dtype!r} and target"
                f" {self.target!r}, not {self.multiplier!r}"
            )
        if not errors["dsp_cols"] and None not in (self.cols, self.dsp_cols) and not errors["cols"]:
            limit = self.cols if self._has_dsp() else 0
            if self.dsp_cols > limit:
                problems.append(
                    f"dsp_cols must be at most {limit} with {self.cols} columns and target"
                    f" {self.target!r}, not {self.dsp_cols}"
                )
        if not errors["dsp_cols"] and self.dsp_cols and self._exceeds_dsp_block():
            problems.append(
                f"dsp_cols must be 0 with several products a PE, target {self.target!r} and"
                f" multiplier 'fip', not {self.dsp_cols}"
            )
        if not problems:
            problems += self._ram_problems()
        sizes = self.lanes, self.bytes_out
        requantizes = self.requantize not in ("none", None)
        if requantizes and all(map(_is_integer, sizes)) and sizes[0] > sizes[1]:
            problems.append(
                f"lanes must be at most bytes_out ({self.bytes_out}) unless requantize is none,"
                f" not {self.lanes}"
            )
        known = None not in (self.c_words, self.rows)
        if known and not errors["c_words"] and not errors["rows"] and 0 < self.c_words < self.rows:
            problems.append(f"c_words must be 0 or at least rows ({self.rows}), not {self.c_words}")
        if problems:
            raise ConfigError("\n".join(problems))

    def _resolve(self):
        """Set ``multiplier`` and ``dsp_cols`` from other fields, if they are automatic."""
        even = _is_integer(self.depth) and self.depth % 2 == 0
        if self.multiplier == "auto":
            allowed = self.dtype in DTYPES and self.data_type.allows_fip
            fast = allowed and even and self.target in TARGETS and self.family.prefers_fip
            fast = fast and self.depth <= (self.family.max_fip_depth or self.depth)
            object.__setattr__(self, "multiplier", "fip" if fast else "plain")
        if self.dsp_cols is None:
            blocks = self._has_dsp() and not self._exceeds_dsp_block()
            object.__setattr__(self, "dsp_cols", self.cols if blocks else 0)

    def _ram_problems(self):
        """Yield the problems of ``ram_cols`` in a Config whose MAC cell and columns are valid."""
        limit = self.cols - self.dsp_cols
        if self.ram_cols and not self.cell.has_squares:
            yield f"ram_cols must be 0 with MAC cell {self.mac_cell!r}, not {self.ram_cols}"
        elif self.ram_cols > limit:
            yield (
                f"ram_cols must be at most {limit} with {self.cols} columns, of which"
                f" {self.dsp_cols} use DSP blocks, not {self.ram_cols}"
            )

    def _has_dsp(self):
        return self.target in TARGETS and self.family.has_dsp

    def _exceeds_dsp_block(self):
        """Whether the fast inner products of a PE do not fit the family's DSP blocks."""
        limit = self.family.max_fip_depth if self.target in TARGETS else None
        limited = limit is not None and self.multiplier == "fip"
        return limited and _is_integer(self.depth) and self.depth > limit

    @property
    def data_type(self) -> DType:
        """The data type that `dtype` names."""
        return DTYPES[self.dtype]

    @property
    def family(self) -> Target:
        """The FPGA family that `target` names."""
        return TARGETS[self.target]

    @property
    def mac_cell(self) -> str:
        """The name of its MAC cell."""
        return self.data_type.mac_cell(self)

    @property
    def cell(self) -> MacCell:
        """Its MAC cell."""
        return MAC_CELLS[self.mac_cell]

    @property
    def pe_blocks(self) -> int | None:
        """DSP blocks for each PE in a column with DSP blocks; None without a limit."""
        if self.family.dsp_blocks is None or not self.dsp_cols:
            return None
        return self.family.dsp_blocks // (self.rows * self.dsp_cols)

    def resource(self, col: int) -> str:
        """Where the PEs of a column multiply: "dsp", "ram" or "logic".

        Without columns that use block RAM, the columns with DSP blocks come first. With them, the
        columns of all kinds are spread evenly: DSP blocks and block RAMs lie in lines across the
        whole device.
        """
        counts = {"dsp": self.dsp_cols, "ram": self.ram_cols}
        counts["logic"] = self.cols - sum(counts.values())
        if not self.ram_cols or col >= self.cols:  # a network core has one more column
            return "dsp" if col < self.dsp_cols else "logic"
        centres = sorted(
            ((n + 0.5) / count, kind) for kind, count in counts.items() for n in range(count)
        )
        return centres[col][1]

    @property
    def array(self) -> "Config":
        """The Config of the array: this one."""
        return self

    @property
    def peak(self) -> int:
        """MAC/cycle when every PE is active."""
        return self.rows * self.cols * self.depth

    @property
    def hash(self) -> int:
        """32-bit hash of the Config: first bytes of SHA-256 of all fields as sorted JSON."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    @property
    def name(self) -> str:
        """Short name, usable as the name of a folder or a file."""
        suffix = "" if self.mac_cell == "plain" else f"_{self.mac_cell}"
        return f"{self.rows}x{self.cols}x{self.depth}{suffix}"

    @classmethod
    def from_dict(cls, values: dict) -> "Config":
        """A Config from field values; unknown names are reported with all other problems."""
        known = {f.name: f for f in dataclasses.fields(cls)}
        problems = [
            f"{name} is not a field of Config; the fields are {', '.join(known)}"
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
        """A Config from a TOML file of field values; ``overrides`` replace values of the file.

        Raises ConfigError for a missing file, a file that is not TOML, and invalid values.
        """
        try:
            # utf-8-sig ignores the byte order mark that some editors write first.
            values = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} must be a readable TOML file: {error}") from error
        except RecursionError as error:
            text = f"{path} must be a readable TOML file: it is nested too deep"
            raise ConfigError(text) from error
        try:
            return cls.from_dict({**values, **overrides})
        except ValueError as error:  # ConfigError, or a number with too many digits to print
            raise ConfigError(f"{path}:\n{error}") from error


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value):
    """An int for an integer of any type except bool; any other value as it is."""
    if isinstance(value, bool):
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        return value


def _shown(value):
    """The value as one line of text, shortened if necessary."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # thousands of digits, or deeply nested lists
        return f"a huge {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _check(f, value):
    """Yield the problems of one field's value, as text."""
    rule = f.metadata
    if value is None and ("by_dtype" in rule or "open" in rule):  # the field it follows is wrong
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
