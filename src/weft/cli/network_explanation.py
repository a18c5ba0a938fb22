"""The first lines of the commands for networks: what runs where, and why."""

__all__ = ["explained"]


def explained(program) -> list[str]:
    """Return the placement line of a program, the reasons, and the notes."""
    from weft.models.network_core.program import ChipProgram

    if isinstance(program, ChipProgram):
        from weft.models.report.chip_placement import chip_placement_line, chip_reasons

        return [chip_placement_line(program), *chip_reasons(program), *program.notes]
    from weft.models.report.placement import placement_line, reasons_of

    return [placement_line(program), *reasons_of(program), *program.notes]
