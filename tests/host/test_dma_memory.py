"""Memory that is mapped from a file."""

import mmap

import pytest

from weft.host.dma import MappedMemory
from weft.host.transport import TransportError


def test_mapped_memory_is_the_file(tmp_path):
    path = tmp_path / "memory"
    path.write_bytes(bytes(2 * mmap.PAGESIZE))
    memory = MappedMemory(str(path), 0x1000, mmap.PAGESIZE, offset=mmap.PAGESIZE)
    memory.write(3, b"abc")
    assert memory.read(2, 5) == b"\0abc\0"
    memory.close()
    assert path.read_bytes()[mmap.PAGESIZE :][:8] == b"\0\0\0abc\0\0"


def test_rejects_memory_that_cannot_be_mapped(tmp_path):
    with pytest.raises(ValueError, match=f"offset must be a multiple of {mmap.PAGESIZE}, not 0x3"):
        MappedMemory("/dev/mem", 0, 1, offset=3)
    with pytest.raises(ValueError, match="size must be 1 or more, not 0"):
        MappedMemory("/dev/mem", 0, 0)
    with pytest.raises(TransportError, match="none was not mapped at 0x0"):
        MappedMemory(str(tmp_path / "none"), 0, 1)
