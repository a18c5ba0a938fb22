"""The microprogram of a core fits, and has the sizes of the core."""

from network_cores import MICRO, network_core_config

from weft.network_core.descriptors import ListError, NetworkState
from weft.network_core.microcode import assemble
from weft.network_core.microcode.instructions import PROGRAM_WORDS, REGISTERS


def test_it_fits_and_begins_at_its_start():
    program = assemble(MICRO)
    assert len(program.words) <= PROGRAM_WORDS and len(program.registers) == REGISTERS
    assert program.labels["start"] == 0
    assert all(0 <= word < 1 << 16 for word in [*program.words, *program.registers])


def test_its_constants_have_the_errors_and_the_sizes_of_the_core():
    sizes = dict(b_words=300, lines=77)
    config = network_core_config(1, 4, 4, 1, target="ice40up", multiplier="plain", scale_cycles=4,
                        read_vectors=1, **sizes)
    found = assemble(config)
    assert found.words == assemble(MICRO).words
    assert {300, 77, int(NetworkState.DONE)} <= set(found.registers)
    for error in (ListError.OPCODE, ListError.FIELD, ListError.ADDRESS, ListError.DEADLOCK):
        assert NetworkState.ERROR | error << 8 in found.registers
