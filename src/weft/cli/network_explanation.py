"""The first lines of the commands for networks: what runs where, and why."""

__all__ = ["explained"]


def explained(program) -> list[str]:
    """Return the placement line of a program, the reasons, and the notes."""
    from weft.models.network_core.program import NetworkCoreProgram

    if isinstance(program, NetworkCoreProgram):
        from weft.models.report.network_core_placement import (
            network_core_placement_line,
            network_core_reasons,
        )

        return [
            network_core_placement_line(program), *network_core_reasons(program), *program.notes
        ]
    from weft.models.report.placement import placement_line, reasons_of

    return [placement_line(program), *reasons_of(program), *program.notes]
