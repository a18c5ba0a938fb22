"""The placement line of a network core."""

from weft.models.report.network_core_placement import (
    link_bytes,
    network_core_placement_line,
    network_core_reasons,
)


def test_line_of_two_lists(network_core_program):
    line = network_core_placement_line(network_core_program)
    assert line.startswith(
        "net: 4 of 5 operators on Weft (100 % of 41,472 MAC), 1 on the host (MAX_POOL_2D); equal to"
        " TFLite Micro in mode tflite; mine, 2 lists on the core: "
    )
    # Each list: WRITE with 288 bytes in a frame of 24 bytes more, and START in 20; an ACK of 12 for
    # each of them, and DONE in 20 and 288.
    assert link_bytes(network_core_program) == (2 * (288 + 24 + 20), 2 * (3 * 12 + 8 + 288))
    assert line.endswith(" us core, 13.3 ms wire")
    assert network_core_reasons(network_core_program) == [
        "on the host: MAX_POOL_2D: no product; no core computes it"
    ]
