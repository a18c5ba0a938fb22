"""Tests of BF16 jobs on the golden transport, with sums that are exact in any order."""

import numpy as np
import pytest
from golden_commands import FEED, job
from golden_commands import load as make_load
from golden_commands import result as results_of
from golden_stream import GoldenStream
from ml_dtypes import bfloat16
from rejects import rejects

from weft.commands import JobFlag, Load, LoadFlag, Region, Status
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import LIMITS, pack_entries
from weft.host.transport import Packet, TransportError, TransportTimeout
from weft.registers import REGISTERS

CONFIG = Config(
    dtype="bf16", rows=2, cols=3, a_words=64, b_words=512, c_words=32, bytes_in=8, bytes_out=8,
    jobs=2,
)
NONE = JobFlag(0)
ROW = JobFlag.PRELOAD | JobFlag.BROADCAST


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def load(region, matrix, page=0, flags=LoadFlag.FEED):
    """A load of all of A, of B transposed, or of C transposed."""
    dtype = bfloat16 if region != Region.C else np.float32
    return make_load(region, matrix.astype(dtype), page, flags, CONFIG)


def load_c(c, page=0):
    return load(Region.C, c.T, page, LoadFlag(0))


def fed(a, b):
    return load(Region.A, a) + load(Region.B, b.T)


def result(transport, m, n, tag, dtype=np.float32):
    return results_of(transport, m, n, tag, dtype, CONFIG)


@pytest.fixture
def transport():
    return GoldenStream(CONFIG)


def test_multiplies_to_the_byte(transport):
    # A = [1.5 -2; 0.5 4], B = [2 1 -1; 3 0 0.25], in panels of one page
    commands = (
        bytes.fromhex("01 02 3412 0300 0200 02000000 0300")
        + bytes.fromhex("0000 0100 0100 0000 0100 0100 0000 0000 0000")
        + bytes.fromhex("02 02 00 01 0000 0100 01000000 02000000 01000000") + bytes(12)
        + bytes.fromhex("c03f 003f 00c0 8040")  # two words of two values share one of the stream
        + bytes.fromhex("02 02 01 01 0000 0100 01000000 02000000 01000000") + bytes(12)
        + bytes.fromhex("0040 803f 80bf 0000") + bytes.fromhex("4040 0000 803e 0000")
    )
    transport.send_words(commands)
    rows = [[3 - 6, 1.5, -1.5 - 0.5], [1 + 12, 0.5, -0.5 + 1]]
    data = b"".join(np.array([*row, 0], "<f4").tobytes() for row in rows)
    assert transport.receive(0) == Packet(0x1234, True, Status(0), data)
    transport.send_words(job(2, 3, 2, 7, JobFlag.ROUND))
    data = bytes.fromhex("40c0 c03f 00c0 0000 5041 003f 003f 0000")
    assert transport.receive(0) == Packet(7, True, Status(0), data)


@pytest.mark.parametrize("m, n", [(1, 1), (2, 3), (5, 7)])
def test_starts_from_c(transport, m, n):
    a, b, c = numbers(m, 4), numbers(4, n, seed=1), numbers(m, n, seed=2)
    panels = -(-n // 3)
    places = {"c_page": 1, "c_pitch": m, "c_pages": m * panels}
    transport.send_words(load_c(c, page=1))
    transport.send_words(job(m, n, 4, 1, FEED | JobFlag.PRELOAD, **places) + fed(a, b))
    assert result(transport, m, n, 1) == (a @ b + c).tolist()
    # A word for all rows; and nothing of it without the flag.
    transport.send_words(job(m, n, 4, 2, ROW, **places))
    assert result(transport, m, n, 2) == (a @ b + c[0]).tolist()
    transport.send_words(job(m, n, 4, 3, JobFlag.BROADCAST, **places))
    assert result(transport, m, n, 3) == (a @ b).tolist()


def test_hands_on_the_sums_of_a_pass(transport):
    a, b, c = numbers(2, 12), numbers(12, 24, seed=1), numbers(2, 24, seed=2)
    kinds = [JobFlag.KEEP | JobFlag.PRELOAD, JobFlag.KEEP | JobFlag.ACCUMULATE, JobFlag.ACCUMULATE]
    transport.send_words(load_c(c))
    for tag, kind in enumerate(kinds):
        k = slice(4 * tag, 4 * tag + 4)
        places = {"c_pitch": 2, "c_pages": 16}
        transport.send_words(job(2, 24, 4, tag, FEED | kind, **places) + fed(a[:, k], b[k]))
    assert result(transport, 2, 24, 2) == (a @ b + c).tolist()
    assert transport.read(REGISTERS.index("finished"), 1, 1) == [3]


@pytest.mark.parametrize("flags, limits", [
    (JobFlag.CLAMP, True), (JobFlag.CLAMP | JobFlag.ROUND, True), (JobFlag.ROUND, False),
])
def test_clamps_by_the_parameters_of_columns(transport, flags, limits):
    a, b = numbers(3, 9), numbers(9, 4, seed=1)
    entries = np.array([(-5, 5), (0, np.inf), (-np.inf, 0), (2, 2)], LIMITS)
    operand = memories(CONFIG)[Region.PARAMETERS]
    assert len(pack_entries(entries, operand, 3)) == 2 * 32  # 4 lanes, 2 panels
    transport.send_words(Load(2, 0, 1, 2, 1).pack() + pack_entries(entries, operand, 3))
    transport.send_words(job(3, 4, 9, 1, FEED | flags) + fed(a, b))
    want = a @ b
    if limits:
        want = np.clip(want, entries["low"], entries["high"])
    narrow = bfloat16 if JobFlag.ROUND in flags else np.float32
    assert result(transport, 3, 4, 1, narrow) == want.astype(narrow).astype(np.float32).tolist()


def test_flushes_subnormals_if_configured():
    small = np.array([[2.0**-70]], np.float32)
    places = {"c_pitch": 1, "c_pages": 1}
    for flush, want in ((False, 2.0**-140), (True, 0)):
        transport = GoldenStream(
            Config(dtype="bf16", rows=2, cols=3, flush_subnormals=flush, bytes_out=8, bytes_in=8)
        )
        transport.send_words(load_c(np.zeros((1, 1))) + job(1, 1, 1, 0, FEED | ROW, **places))
        transport.send_words(fed(small, small))
        assert result(transport, 1, 1, 0) == [[want]]


@pytest.mark.parametrize("header", [
    job(1, 1, 1, 5, JobFlag.PRELOAD | JobFlag.ACCUMULATE), job(1, 1, 1, 5, JobFlag.REQUANTIZE),
    job(1, 1, 1, 5, JobFlag.TABLE), job(1, 1, 1, 5, JobFlag(1024)), job(9, 1, 1, 5),
    job(1, 25, 1, 5, JobFlag.KEEP), job(3, 1, 1, 5, JobFlag.KEEP),
    job(1, 25, 1, 5, JobFlag.ACCUMULATE), job(3, 24, 1, 5, JobFlag.ACCUMULATE),
    job(0, 1, 1, 5), job(1, 0, 1, 5), job(1, 1, 0, 5), job(1, 97, 1, 5), job(1, 1, 65, 5),
])
def test_rejects_unsupported_jobs(transport, header):
    a, b = numbers(2, 2), numbers(2, 2, seed=1)
    transport.send_words(header + job(2, 2, 2, 6) + fed(a, b))
    packet = transport.receive(0)
    assert (packet.tag, packet.last, packet.status) == (5, True, Status.REJECTED)
    assert len(packet.data) == 8
    assert result(transport, 2, 2, 6) == (a @ b).tolist()


@pytest.mark.parametrize("fields, flags", [
    ({"c_words": 0}, JobFlag.PRELOAD), ({"c_words": 0}, JobFlag.BROADCAST),
    ({"activation": "none"}, JobFlag.CLAMP),
])
def test_rejects_features_not_in_the_config(fields, flags):
    transport = GoldenStream(Config(dtype="bf16", rows=2, cols=3, **fields))
    transport.send_words(job(1, 1, 1, 5, flags))
    assert transport.receive(0).status == Status.REJECTED
    operand = 4 if "c_words" in fields else 2
    transport.send_words(Load(operand, 0, 1, 1, 1).pack())
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [1]


def test_a_load_of_c_waits_for_jobs_that_start_from_it(transport):
    c = numbers(1, 3)
    places = {"c_page": 4, "c_pitch": 2, "c_pages": 2}
    transport.send_words(job(2, 3, 2, 0, FEED, **places) + load_c(c, page=4) + bytes(32))
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [1]  # a job without C has none
    transport.abort(1)
    transport.send_words(job(2, 3, 2, 0, FEED | JobFlag.PRELOAD, **places))
    for page, errors in ((3, 2), (6, 3), (5, 3)):
        transport.send_words(load_c(c, page=page) + bytes(32))
        assert transport.read(REGISTERS.index("errors"), 1, 1) == [errors]
    transport.abort(1)
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [4]
    with pytest.raises(TransportTimeout):
        for _ in range(3):
            transport.receive(0)


@pytest.mark.parametrize("commands, text", [
    (load_c(numbers(9, 12), page=0),
     "a load must lie within 32 pages, not 4 panels of 9 words every 9 pages from page 0"),
    (job(2, 6, 2, 0, JobFlag.PRELOAD, c_page=8, c_pitch=23, c_pages=1),
     "a job's C must lie within 32 words, not 33"),
    (Load(2, 0, 1, 1, 1).pack() + np.array([np.nan, 1] + 6 * [0], "<f4").tobytes()
     + job(1, 1, 1, 0, JobFlag.CLAMP),
     "parameters of a job: low must be a number, not nan"),
    (Load(2, 0, 1, 1, 1).pack() + np.array([2, 1] + 6 * [0], "<f4").tobytes()
     + job(1, 1, 1, 0, JobFlag.CLAMP),
     "parameters of a job: low must be at most high (1.0), not 2.0"),
])  # fmt: skip
def test_rejects_commands_with_undefined_effect(transport, commands, text):
    with rejects(TransportError, text):
        transport.send_words(commands)
