"""``weft selftest``: tests a core, its memories and its link."""

import dataclasses
import time

import numpy as np

from weft.cli.arguments import integer
from weft.cli.options import NAMES, add_transport, open_named
from weft.commands import JobFlag, epilogue_flags
from weft.config import PAGE_WORDS
from weft.dtypes import DTYPES
from weft.geometry import operands

__all__ = ["CASES", "DESCRIPTION", "HELP", "OperandCases", "add", "memories", "products", "run"]


_PATTERNS = {"00": 0x00, "7f": 0x7F, "55": 0x55, "aa": 0xAA}  # value of each byte of a buffer
_DEEP = 2.5  # K relative to the K that a buffer holds, so that the driver splits K
_MAX_SIZE = 1 << 16  # of M, K and N, to limit the run time


def memories(config, seed):
    """Checks of the operand buffers: [(name, check(accelerator) -> (details, failure))]."""
    cases = CASES[config.dtype](config, seed)
    return [(f"{side.upper()} buffer", _memory_case(cases, side)) for side in ("a", "b")]


def products(config, seed):
    """Checks of products of every class of shape, in the same form as `memories`."""
    cases = CASES[config.dtype](config, seed)
    a, b = operands(config)
    rows, cols, depth = config.rows, config.cols, config.depth
    shapes = {
        "1 x 1 x 1": (1, 1, 1),
        "K of 1": (rows, 1, cols),
        "one tile": (rows, 4 * depth, cols),
        "ragged edges": (2 * rows + 1, 3 * depth + 1, cols + 1),
        "larger than the array": (3 * rows, 7 * depth, 3 * cols),
        "more K than a buffer holds": (rows, int(_DEEP * min(a.words, b.words) * depth), cols),
        "more rows than A holds": (rows * a.pages + 1, depth, 1),
    }
    yield from (
        (name, cases.product(*shape))
        for name, shape in shapes.items() if max(shape) < _MAX_SIZE
    )
    yield "extremes", cases.extremes(2 * rows, 3 * depth + 1, 2 * cols)
    yield "resident B", cases.resident(rows + 1, 3 * depth, cols + 1)
    yield "back to back", cases.batch(6, rows + 1, 2 * depth + 1, cols)
    if epilogue_flags(config):
        yield "finished on the chip", cases.finished(rows + 1, 3 * depth, cols + 1)


def _memory_case(cases, side):
    """Tests each value of each page of a buffer, with every pattern and with noise.

    One operand fills the buffer, with one page per panel. The other operand is the identity, so
    each result of the product is one value of the buffer.
    """
    geometry = operands(cases.config)[side == "b"]
    k, vectors = PAGE_WORDS * geometry.depth, geometry.pages * geometry.edge

    def check(accelerator):
        fills = {name: cases.filled(value, vectors, k) for name, value in _PATTERNS.items()}
        for name, values in (fills | {"noise": cases.noise(vectors, k)}).items():
            stored = values if side == "a" else np.ascontiguousarray(values.T)
            unit = np.eye(k).astype(stored.dtype)
            with accelerator.load(stored, side) as loaded:
                result = accelerator.matmul(*((loaded, unit) if side == "a" else (unit, loaded)))
            expected = cases.golden(*((stored, unit) if side == "a" else (unit, stored)))
            if failure := _difference(result, expected):
                return "", f"{name}: {failure}"
        return f"{geometry.pages} pages, each value: {', '.join(fills)}, noise", None
    return check


def _difference(result, expected):
    """How two arrays differ, bit for bit, as text; None if they are equal."""
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return (
            f"results are {result.dtype} of shape {result.shape}, expected {expected.dtype} of"
            f" shape {expected.shape}"
        )
    bits = [x.view(f"u{x.itemsize}") for x in (result, expected)]
    wrong = np.argwhere(bits[0] != bits[1])
    if not len(wrong):
        return None
    index = tuple(int(n) for n in wrong[0])
    values = f"{result[index]}, expected {expected[index]}"
    return f"{len(wrong)} of {expected.size} results differ, the first at {index}: {values}"


class OperandCases:
    """Random operands of a data type, and checks of their products.

    A subclass has the type DTYPE and two values EXTREMES of the operands, and the methods `noise`,
    `filled`, `golden` and `finish`.
    """

    def __init__(self, config, seed):
        self.config = config
        self.random = np.random.default_rng(seed)

    def product(self, m, k, n):
        return self._compared(self.noise(m, k), self.noise(k, n))

    def batch(self, count, m, k, n):
        return self._compared(self.noise(count, m, k), self.noise(count, k, n))

    def extremes(self, m, k, n):
        a = self.random.choice(np.array(self.EXTREMES, self.DTYPE), (m, k))
        return self._compared(a, np.full((k, n), self.EXTREMES[0], self.DTYPE))

    def resident(self, m, k, n):
        b, a_operands = self.noise(k, n), [self.noise(m, k) for _ in range(3)]

        def check(accelerator):
            with accelerator.load(b) as weights:
                for a in a_operands:
                    failure = _difference(accelerator.matmul(a, weights), self.golden(a, b))
                    if failure:
                        return "", failure
            return f"{len(a_operands)} of {m} x {k} x {n}", None
        return check

    def finished(self, m, k, n):
        a, b = self.noise(m, k), self.noise(k, n)
        arguments, expected = self.finish(a, b)
        return self._compared(a, b, expected, **arguments)

    def _compared(self, a, b, expected=None, **arguments):
        def check(accelerator):
            golden = self.golden(a, b) if expected is None else expected
            failure = _difference(accelerator.matmul(a, b, **arguments), golden)
            return " x ".join(map(str, (*a.shape, b.shape[-1]))), failure
        return check


class _Int8Cases(OperandCases):
    DTYPE, EXTREMES = np.int8, (-128, 127)

    def noise(self, *shape):
        return self.random.integers(-128, 128, shape, dtype=np.int8)

    def filled(self, value, *shape):
        return np.full(shape, value, np.uint8).view(np.int8)

    def golden(self, a, b):
        from weft.golden import matmul

        return matmul(a, b)

    def finish(self, a, b):
        """(arguments of ``matmul`` that let the core finish the results, expected results)."""
        from weft.golden import add_bias, requantize

        n, mode = b.shape[-1], self.config.requantize
        bias = self.random.integers(-1000, 1000, n, dtype=np.int32)
        if mode == "onnx":
            scaling = {"scale": self.random.uniform(1e-3, 1e-2, n).astype(np.float32)}
        else:
            multiplier = self.random.integers(1 << 30, 1 << 31, n, dtype=np.int64)
            scaling = {"multiplier": multiplier.astype(np.int32), "shift": np.full(n, -8, np.int32)}
        arguments = {**scaling, "zero_point": 3, "low": -100}
        expected = requantize(add_bias(self.golden(a, b), bias), mode=mode, **arguments)
        return {**arguments, "bias": bias}, expected


class _Bf16Cases(OperandCases):
    @property
    def DTYPE(self):
        from ml_dtypes import bfloat16

        return bfloat16

    EXTREMES = (-3.3895314e38, 1e-38, 3.3895314e38, 0.0)

    def noise(self, *shape):
        """Random finite numbers with all exponents for which products stay finite."""
        bits = self.random.integers(0, 1 << 16, shape, dtype=np.uint16)
        return (bits & 0xBFFF).view(self.DTYPE)

    def filled(self, value, *shape):
        return np.full(shape, value << 8 | value, np.uint16).view(self.DTYPE)

    def golden(self, a, b):
        from weft.golden import matmul_bf16

        return matmul_bf16(a, b, flush_subnormals=self.config.flush_subnormals)

    def finish(self, a, b):
        from weft.golden import clamp, to_bfloat16

        sums = self.golden(a, b)
        if JobFlag.CLAMP not in epilogue_flags(self.config):
            return {"out_dtype": self.DTYPE}, to_bfloat16(sums)
        y = to_bfloat16(clamp(sums, low=np.float32(0)))
        return {"low": 0.0, "out_dtype": self.DTYPE}, y


# Subclasses of `OperandCases`, by the name of the data type.
CASES = DTYPES.layer("checks", int8=_Int8Cases, bf16=_Bf16Cases)


HELP = "test a core, its memories and its link"
DESCRIPTION = f"""\
Test a core and its link against the golden model: its identity registers, its operand buffers page
by page, the link at its full rate, and products of every class of shape. Of a network core its
whole memories are tested instead of the buffers.

  weft selftest /dev/ttyUSB1
  weft selftest board --rows 2 --cols 2 --a-words 64 --b-words 64

{NAMES}
Exit code 1 if a check fails.
"""
_TIMEOUT = 60.0  # seconds without an answer
_READS = 40  # reads of all registers, to load the link towards the host


@dataclasses.dataclass(frozen=True)
class Check:
    """One row of the table; ``failure`` is None if the check passed."""

    name: str
    details: str
    failure: str | None


def add(parser):
    """Add the arguments of ``weft selftest``."""
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="seed of the operands; 0 or more, default 1",
    )
    add_transport(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.progress import progress
    from weft.host import Accelerator
    from weft.host.core_session import product_transport

    with progress() as show:
        with show.task(f"opening {args.transport}"):
            transport, config = open_named(args, show)
        try:
            for_products = product_transport(transport, _TIMEOUT)
            accelerator = Accelerator(for_products, config, timeout=_TIMEOUT)
        except BaseException:
            transport.close()
            raise
        with accelerator:
            checks = []
            for check in _checks(accelerator, transport, for_products, args):
                checks.append(check)
                show.say(f"{check.name}: {'passed' if check.failure is None else 'FAILED'}")
    return _print(checks)


def _print(checks):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("check", "details", "passed"):
        table.add_column(name)
    for check in checks:
        passed = check.failure is None
        outcome = Text("yes", "green") if passed else Text("NO", "bold red")
        table.add_row(Text(check.name), Text(check.details), outcome)
    Console().print(table)
    failed = [check for check in checks if check.failure is not None]
    for check in failed:
        print(f"{check.name}: {check.failure}")
    return 1 if failed else 0


def _cases(config, transport, for_products, seed):
    """The core, and the checks of its memories, its link and its products: [(name, check)]."""
    from weft.host.list_transport import ListTransport

    if not isinstance(for_products, ListTransport):
        return config, [
            *memories(config, seed), ("link", lambda core: _link(core, transport)),
            *products(config, seed),
        ]
    driver = for_products.products.runner
    # Shapes for the buffer of the core, not for the ones that the driver emulates.
    words = max(2 * PAGE_WORDS, 1 << driver.config.b_words.bit_length() - 1)
    sizes = dataclasses.replace(config, a_words=words, b_words=words)
    bytes_of = driver.config.memory_bytes
    cases = [("memory", lambda _: _memory(bytes_of, driver.write, driver.read, seed))]
    if driver.config.program_words:
        cases.append(("program memory", lambda _: _memory(
            driver.program_bytes, driver.write_program, driver.read_program, seed
        )))
    return driver.config, [*cases, *products(sizes, seed)]


def _checks(accelerator, transport, for_products, args):
    """All checks, one after another; stops if the link to the core is closed."""
    from weft.host.transport import TransportClosed

    config = accelerator.config
    core, cases = _cases(config, transport, for_products, args.seed)
    yield Check("identity", f"{core.name}, {core.peak} MAC/cycle, {core.hash:08x}", None)
    for name, case in cases:
        try:
            details, failure = case(accelerator)
        except RuntimeError as error:  # AcceleratorError, TransportError
            yield Check(name, "", str(error))
            if isinstance(error, TransportClosed):
                return
        else:
            yield Check(name, details, failure)
    if hasattr(transport, "name"):
        yield Check("usage", _usage(accelerator, transport, args), None)


def _usage(accelerator, transport, args):
    """The bytes over the link and the busy cycles of the core, with the time of each."""
    from weft.host.serial_port import RATES

    cycles = accelerator.counters()["busy"]
    baud = args.baud or getattr(transport, "baud", RATES[0])
    traffic = (f"{count:,} bytes {direction} ({10 * count / baud:.3f} s at {baud} baud)"
               for count, direction in ((transport.sent, "sent"),
                                        (transport.received, "received")))
    text = f"{', '.join(traffic)}; {cycles:,} busy cycles since the core's reset"
    if args.transport == "board":
        from weft.sim.transport import DIVISOR

        clock = DIVISOR * baud
        text += f" ({cycles / clock:.3f} s at {clock / 1e6:g} MHz)"
    return text


def _memory(size, write, read, seed):
    """(bytes/s in both directions, failure): a memory of a network core, and its link."""
    import numpy as np

    wrong, seconds = 0, [0.0, 0.0]
    noise = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    for values in (noise, ~noise):
        times = [time.perf_counter()]
        write(0, values.tobytes())
        times.append(time.perf_counter())
        found = np.frombuffer(read(0, size), np.uint8)
        times.append(time.perf_counter())
        wrong += int((found != values).sum())
        seconds = [total + after - before for total, before, after in zip(
            seconds, times, times[1:], strict=False
        )]
    rates = [f"{2 * size / total:,.0f}" for total in seconds]
    text = f"{size:,} bytes; {rates[0]} bytes/s to the core, {rates[1]} bytes/s from it"
    return text, f"{wrong} of {2 * size:,} bytes are wrong" if wrong else None


def _link(accelerator, transport):
    """(bytes/s in both directions, failure): loads a full buffer, then reads registers."""
    from weft.geometry import operands
    from weft.registers import REGISTERS, describe

    config = accelerator.config
    if not hasattr(transport, "sent"):
        return "no link: the core is in this process", None
    a, _ = operands(config)
    operand = CASES[config.dtype](config, seed=0).filled(0, a.edge, a.words * a.depth)
    accelerator.load(operand, "a").free()
    before = accelerator.counters()
    rates = []
    for counter, transfer in (
        ("sent", lambda: accelerator.load(operand, "a").free()),
        ("received", lambda: [transport.read(0, len(REGISTERS), _TIMEOUT) for _ in range(_READS)]),
    ):
        start, count = time.perf_counter(), getattr(transport, counter)
        readings = transfer()
        count = getattr(transport, counter) - count
        rates.append(f"{count / (time.perf_counter() - start):,.0f}")
    wrong = [words for words in readings if words[: len(describe(config))] != describe(config)]
    errors = accelerator.counters()["errors"] - before["errors"]
    failure = None
    if wrong or errors:
        failure = (
            f"{len(wrong)} of {_READS} register reads are wrong,"
            f" {errors} command headers were rejected"
        )
    return f"{rates[0]} bytes/s to the core, {rates[1]} bytes/s from it", failure
