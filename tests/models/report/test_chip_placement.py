"""The placement line of a core for networks."""

from weft.models.report.chip_placement import chip_placement_line, chip_reasons, link_bytes


def test_line_of_two_lists(chip_program):
    line = chip_placement_line(chip_program)
    assert line.startswith(
        "net: 4 of 5 operators on Weft (100 % of 41,472 MAC), 1 on the host (MAX_POOL_2D); equal to"
        " TFLite Micro in mode tflite; mine, 2 lists on the core: "
    )
    # Each list: WRITE with 288 bytes in a frame of 24 bytes more, and START in 20; an ACK of 12 for
    # each of them, and DONE in 20 and 288.
    assert link_bytes(chip_program) == (2 * (288 + 24 + 20), 2 * (3 * 12 + 8 + 288))
    assert line.endswith(" us core, 13.3 ms wire")
    assert chip_reasons(chip_program) == [
        "on the host: MAX_POOL_2D: no product; no core computes it"
    ]
