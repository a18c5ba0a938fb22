"""Descriptors, to the byte."""

import struct

import pytest

from weft.commands import Job, JobFlag, Load, LoadFlag
from weft.config import Config
from weft.descriptors import (
    DESCRIPTOR_BYTES,
    DescriptorWord,
    ElementOrder,
    Fetch,
    Store,
    write_unit,
)


def test_a_fetch_is_a_load_and_where_it_lies():
    load = Load(1, 3, 2, 5, 20, LoadFlag.FEED)
    packed = Fetch(load, 0x12345678, -33, lines=37, k=40, order=ElementOrder.K_MINOR).pack()
    words = struct.unpack("<16I", packed)
    assert len(packed) == DESCRIPTOR_BYTES
    assert packed[:32] == load.pack()
    assert words[DescriptorWord.ADDRESS] == 0x12345678
    assert words[DescriptorWord.STRIDE] == 2**32 - 33
    wanted = DescriptorWord.LINES, DescriptorWord.K, DescriptorWord.ORDER
    assert [words[word] for word in wanted] == [37, 40, 1]
    assert words[13:] == (0, 0, 0)


def test_a_store_is_a_job_and_where_its_results_go():
    job = Job(3, 4, 5, 0, 1, 1, 0, 1, 1, tag=9)
    words = struct.unpack("<16I", Store(job, 0x1000, 64).pack())
    assert struct.pack("<8I", *words[:8]) == job.pack()
    assert words[8:] == (0x1000, 64, 0, 0, 0, 0, 0, 0)


def test_rejects_an_address_that_does_not_fit():
    with pytest.raises(struct.error):
        Fetch(Load(0, 0, 1, 1, 1), 1 << 32).pack()


@pytest.mark.parametrize("config, flags, size", [
    (Config(), JobFlag(0), 4),
    (Config(), JobFlag.REQUANTIZE, 4),
    (Config(lanes=1), JobFlag(0), 4),
    (Config(lanes=1), JobFlag.REQUANTIZE, 1),
    (Config(depth=8), JobFlag(0), 16),
    (Config(depth=8, bytes_in=8, bytes_out=8), JobFlag(0), 8),
    (Config(depth=8), JobFlag.REQUANTIZE, 4),
    (Config(dtype="bf16"), JobFlag.ROUND, 2),
])
def test_units_of_results(config, flags, size):
    assert write_unit(config, flags) == size
