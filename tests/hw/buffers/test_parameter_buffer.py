"""The parameter buffer: every part of every entry, for each width of the stream."""

import random

import pytest

from verif.amaranth_bench import play
from verif.loader_model import write_port
from weft.geometry import Operand
from weft.hw.output.serial_requantizer import ParameterBuffer


@pytest.mark.parametrize("stream", [1, 2, 4, 8])
@pytest.mark.parametrize("lanes", [1, 2])
def test_reads_the_parts_that_were_written(stream, lanes):
    rng = random.Random(stream)
    geometry = Operand(lanes, 16, 8, stream, 2)
    words = [bytes(rng.randrange(256) for _ in range(16 * lanes)) for _ in range(geometry.words)]
    script = [
        {"write": {"valid": 1, "write": {
            "line": line, "segment": n, "page": line // 2, "begin": 0, "end": 0,
            "data": int.from_bytes(word[n * stream : (n + 1) * stream], "little"),
        }}}
        for line, word in enumerate(words) for n in range(geometry.segments)
    ]
    script.append({"write": {"valid": 0}})
    first = len(script)
    reads = [tuple(rng.randrange(2 * geometry.words) for _ in range(2)) for _ in range(60)]
    script += [{"even_addr": even, "odd_addr": odd} for even, odd in reads]
    dut = ParameterBuffer(geometry=geometry, write=write_port(geometry), target="ice40hx")
    found = play(dut, script, "even", "odd", tail=dut.LATENCY)
    for n, addresses in enumerate(reads):
        for odd, address in enumerate(addresses):
            start = 8 * (address % 2) + 4 * odd
            word = words[address // 2]
            assert found[odd][first + n + dut.LATENCY] == [
                int.from_bytes(word[16 * lane + start :][:4], "little") for lane in range(lanes)
            ]
