"""Tests of jobs with requantization on the golden transport, header by header."""

import numpy as np
import pytest
from golden_commands import CONFIG, FEED, job, load, numbers, product, result
from golden_stream import GoldenStream
from rejects import rejects

from weft.commands import JobFlag, Load, Status
from weft.config import Config
from weft.geometry import memories
from weft.golden import requantize
from weft.host.packing import ENTRY, pack_entries, pack_table, unpack
from weft.host.transport import Packet, TransportError
from weft.registers import REGISTERS


@pytest.fixture
def transport():
    return GoldenStream(CONFIG)


def parameters(*entries, page=0, config=CONFIG):
    """A load of the parameters of one panel."""
    operand = memories(config)[2]
    chunks = -(-config.cols // config.lanes)
    header = Load(2, page, 1, 1, chunks).pack().ljust(config.bytes_in, b"\0")
    return header + pack_entries(np.array(list(entries), ENTRY), operand, config.cols)


def table(values, config=CONFIG):
    header = Load(3, 0, 1, 1, 256).pack().ljust(config.bytes_in, b"\0")
    return header + pack_table(np.array(values, np.uint8), memories(config)[3])


HALVE = (1 << 30, 0)  # multiplier and shift
FINISH = FEED | JobFlag.REQUANTIZE


def test_requantizes_to_the_byte(transport):
    a, b = np.array([[1, 2], [-3, 4]], np.int8), np.array([[10, -20, 3], [1, 2, -3]], np.int8)
    entries = (5, *HALVE, 0, 0, -128, 127), (0, *HALVE, 0, 100, 0, 255), (0, *HALVE, 0, 7, 7, 9)
    transport.send_words(parameters(*entries) + job(2, 3, 2, 1, FINISH) + load(0, a) + load(1, b.T))
    # sums 12 -16 -3, -26 68 -21; 17 / 2 goes up, -21 / 2 to -10; a chunk of 4 for each row
    rows = [[9, 92, 7], [-10, 134, 7]]
    data = b"".join(bytes(v % 256 for v in row) + b"\0" for row in rows)
    assert transport.receive(0) == Packet(1, True, Status(0), data)
    looked_up = [(3 * i) % 256 for i in range(256)]
    transport.send_words(table(looked_up) + job(2, 3, 2, 2, JobFlag.REQUANTIZE | JobFlag.TABLE))
    data = b"".join(bytes(looked_up[v % 256] for v in row) for row in rows)
    got = transport.receive(0).data
    assert got[:3] + got[4:7] == data
    transport.send_words(job(2, 3, 2, 3, JobFlag.TABLE))  # alone it says nothing
    assert result(transport, 2, 3, 3) == product(a, b)


def test_subtracts_zero_points_of_b_from_whole_chains():
    config = Config(
        rows=2, cols=3, depth=2, a_words=64, b_words=64, bytes_in=8, bytes_out=8, jobs=2,
        b_zero_point="column",
    )
    transport = GoldenStream(config)
    a, b = numbers(2, 12), numbers(12, 3, seed=1)
    kinds = [JobFlag.KEEP, JobFlag.KEEP | JobFlag.ACCUMULATE, JobFlag.ACCUMULATE]
    entries = [(0, 1 << 30, -8, zero, 0, -128, 127) for zero in (0, -128, 127)]
    for tag, kind in enumerate(kinds):
        k = slice(4 * tag, 4 * tag + 4)
        flags = FEED | kind
        if kind is kinds[-1]:
            transport.send_words(parameters(*entries, config=config))
            flags |= JobFlag.REQUANTIZE
        transport.send_words(job(2, 3, 4, tag, flags) + load(0, a[:, k]) + load(1, b[k].T))
    sums = (a.astype(int) @ (b.astype(int) - [0, -128, 127])).astype(np.int32)
    got = unpack(transport.receive(0).data, 2, 3, config, np.int8)
    assert got.tolist() == requantize(sums, 1 << 30, -8).tolist()
    assert len(np.unique(got)) > 4


def test_loads_of_parameters_and_table_wait_for_jobs(transport):
    transport.send_words(job(2, 2, 2, 1, FINISH))  # waits to be fed
    entry = (0, *HALVE, 0, 0, -128, 127)
    transport.send_words(parameters(entry, page=1) + bytes(32))
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [1]
    for number, blocked in enumerate((parameters(entry), table(range(256)))):
        transport.send_words(blocked + bytes(32))
        assert transport.read(REGISTERS.index("errors"), 1, 1) == [1 + number]
        transport.abort(1)
        assert transport.receive(0).status == Status.ABORTED
        assert transport.read(REGISTERS.index("errors"), 1, 1) == [2 + number]
        transport.send_words(job(2, 2, 2, 1, FINISH))


@pytest.mark.parametrize("fields, flags", [
    ({"requantize": "none"}, JobFlag.REQUANTIZE), ({"requantize": "none"}, JobFlag.TABLE),
    ({"activation": "none"}, JobFlag.REQUANTIZE | JobFlag.TABLE),
])  # fmt: skip
def test_rejects_features_not_in_the_config(fields, flags):
    transport = GoldenStream(Config(rows=2, cols=3, a_words=64, b_words=64, **fields))
    transport.send_words(job(1, 1, 1, 5, flags))
    assert transport.receive(0).status == Status.REJECTED
    transport.send_words(Load(3, 0, 1, 1, 1).pack())
    assert transport.read(REGISTERS.index("errors"), 1, 1) == [1]


def test_rejects_invalid_parameters(transport):
    want = "parameters of a job: multiplier must be in 0..2147483647, not 2147483648"
    with rejects(TransportError, want):
        entry = parameters((0, 1 << 31, 0, 0, 0, 0, 0))
        transport.send_words(entry + job(1, 1, 1, 0, JobFlag.REQUANTIZE))
