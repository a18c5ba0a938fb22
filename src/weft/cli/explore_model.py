"""``weft explore model``: errors and coefficients of the estimates."""

__all__ = ["ERROR_COLUMNS", "FAMILIES", "error_rows", "show_model"]

ERROR_COLUMNS = (
    "family", "points", "LUT, typical", "LUT, worst", "FF, typical", "FF, worst",
    "placed", "fmax, typical", "fmax, worst", "DSP, worst", "RAM, worst",
)
FAMILIES = "ecp5", "ice40", "ecp5-networks", "ice40-networks"


def show_model() -> int:
    """Print the leave-one-out errors of each FPGA family, and the coefficients of its model."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 160)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ERROR_COLUMNS:
        table.add_column(name, justify="left" if name == "family" else "right")
    for row in error_rows():
        table.add_row(*row)
    console.print("Errors of points that the model was not fitted to (leave-one-out):")
    console.print(table)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("family", "block", "feature", "LUT", "FF", "RAM"):
        justify = "left" if name in ("family", "block", "feature") else "right"
        table.add_column(name, justify=justify)
    for row in _coefficient_rows():
        table.add_row(*row)
    console.print("Cells that a block takes for each feature:")
    console.print(table)
    return 0


def error_rows() -> list[list[str]]:
    """A row of `ERROR_COLUMNS` for each family with enough points."""
    from weft.explore.model import LEAST, leave_one_out
    from weft.explore.recorded import recorded

    rows = []
    for family in FAMILIES:
        done = [record for record in recorded(family) if record[1].done]
        if sum(bool(outcome.blocks) for _, outcome in done) <= LEAST:
            rows.append([family, str(len(done)), *["-"] * (len(ERROR_COLUMNS) - 2)])
            continue
        errors = leave_one_out(done)
        cells = [family, str(errors.of("LUT").size)]
        for name in ("LUT", "FF", "fmax"):
            known = errors.of(name).size
            cells += [str(known)] * (name == "fmax")
            cells += [
                f"{errors.typical(name):.1%}", f"{abs(errors.of(name)).max():.1%}"
            ] if known else ["-", "-"]
        cells += [str(abs(errors.blocks_of(name)).max()) for name in ("DSP", "RAM")]
        rows.append(cells)
    return rows


def _coefficient_rows():
    from weft.explore.model import LEAST, FittedModel
    from weft.explore.recorded import recorded

    for family in FAMILIES:
        done = [record for record in recorded(family) if record[1].done]
        if sum(bool(outcome.blocks) for _, outcome in done) < LEAST:
            continue
        model = FittedModel(done)
        for part, names in model.set.blocks.items():
            for place, name in enumerate(names):
                found = [
                    model.coefficients[part, each][place] if each in model.set.fitted else 0
                    for each in ("LUT", "FF", "RAM")
                ]
                if any(found):
                    cells = [f"{value:,.3g}" if value else "" for value in found]
                    yield [family, part, "constant" if name == "1" else name, *cells]
