"""Floorplan of an ECP5: fixed sites, or regions, for blocks of a netlist before it is placed.

The DSP blocks of neighbouring PEs lie next to each other; beside them the block RAMs of PEs; in a
free row the multipliers of each scaler; then the block RAMs of the memory of a network core.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.files import write_text

if TYPE_CHECKING:  # a Device has a flow, which has a floorplan
    from weft.boards.devices import Device

__all__ = [
    "operand_regions", "place_dsp_blocks", "place_map_reader", "place_memory", "place_scalers",
    "place_squares",
]

Position = tuple[int, int]  # row and column of a PE
Pes = dict[Position, list[tuple[str, dict]]]  # the cells of each PE, with their names
PE = re.compile(r"\bpe_(\d+)_(\d+)\.")
# The four blocks of a group on an ECP5: column relative to the group, and name.
RAM_GROUP = tuple((2 * n, f"EBR{n}") for n in range(4))
DSP_GROUP = (0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5")
MIN_SHARE = 0.6  # PEs are constrained only if they use this share of the device's DSP blocks
_SCALER = re.compile(r"\bscaler_(\d+)\.")
# Bank, and first bit of the word, of a block of a
# `weft.hw.network_core.memory.banked_memory.BankedMemory`.
_BLOCK = re.compile(r"\bmemory\.bank_(\d+)\.block_(\d+)\b")
# The same of a block of a `weft.hw.network_core.loads.loader.LoadedBuffer` for B.
_OPERAND_BLOCK = re.compile(r"\bbuffer_b\.bank_(\d+)\.block_(\d+)\b")
# Row of a window origin in the panel buffer of a network core.
_ORIGIN = re.compile(r"\bmap_reader\.panels\.origins\[(\d+)\]\.")
# What the map reader of a core that `is_spread` copies: fields of the job, and the step.
_FIELD = re.compile(r"\bjob__fields\b")
_STEP_COPY = re.compile(r"\bmap_reader\.offsets\.(advance|step)(?![a-z])")
_USED = re.compile(r"\bmap_reader\.panels\.used_")
# Tiles of a row's origin, across and down: two registers of a tile at most, of eight.
_ORIGIN_COLUMNS, _ORIGIN_LINES = 4, 10
_MEMORY_REGIONS = 1000  # more than `place_memory` makes


def place_dsp_blocks(path: Path, device: "Device") -> bool:
    """Constrain the MULT18X18D of the PEs in a netlist to sites; returns whether they have sites.

    If PEs use most blocks of an ECP5, nextpnr puts the last ones wherever a site is free, up to a
    whole chip away from their PEs. So each row of PEs gets a row of blocks, or two or three rows of
    PEs share one, in the order of their columns. If there are fewer rows of PEs, each row of blocks
    gets some columns of PEs, in alternating directions. The free sites, for multipliers outside the
    PEs, stay in the middle of each row.

    If the PEs do not need all rows of blocks, the first rows of blocks stay free. Then the rows of
    PEs follow each other in pairs to and fro, from the last row of blocks to the first one in use.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = _blocks_of_pes(netlist, "MULT18X18D")
    count = sum(map(len, pes.values()))
    if not pes or count < MIN_SHARE * device.capacity["DSP"]:
        return False
    columns, rows = device.dsp_sites
    needed = -(-count // (len(columns) * len(DSP_GROUP)))
    if needed < len(rows):
        rows, in_rows = rows[: -needed - 1 : -1], _paired_shares(pes, needed)
    else:
        in_rows = _shares(pes, len(rows))
    lines = [[f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in DSP_GROUP] for y in rows]
    if not _constrain(pes, in_rows, lines):
        return False
    write_text(path, json.dumps(netlist))
    return True


def _blocks_of_pes(netlist: dict, kind: str) -> Pes:
    """The cells of a kind in PEs, with their names, by row and column of the PE."""
    pes = {}
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            match = PE.search(name)
            if cell["type"] == kind and match:
                pes.setdefault((int(match[1]), int(match[2])), []).append((name, cell))
    return pes


def _constrain(pes: Pes, in_lines: list[list[Position]], lines: list[list[str]]) -> bool:
    """Give the cells of each line's PEs sites of the line; False if there are too few.

    The first half of the PEs gets the first sites, and the second half the last sites.
    """
    if any(
        sum(len(pes[position]) for position in positions) > len(sites)
        for positions, sites in zip(in_lines, lines, strict=True)
    ):
        return False
    for positions, sites in zip(in_lines, lines, strict=True):
        middle = len(positions) // 2
        left, right = (
            [cell for position in half for _, cell in sorted(pes[position], key=lambda pe: pe[0])]
            for half in (positions[:middle], positions[middle:])
        )
        for cells, ordered_sites in ((left, sites), (reversed(right), reversed(sites))):
            for cell, site in zip(cells, ordered_sites, strict=False):
                cell["attributes"]["BEL"] = site
    return True


def _shares(positions: Iterable[Position], count: int) -> list[list[Position]]:
    """The positions (row, column) of PEs for each row of blocks, in the order of its sites."""
    rows, columns = (sorted(set(numbers)) for numbers in zip(*positions, strict=True))
    axis, numbers = (0, rows) if len(rows) >= count else (1, columns)
    size = -(-len(numbers) // count)
    found = []
    for n in range(count):
        chosen = numbers[n * size : (n + 1) * size]
        share = [position for position in positions if position[axis] in chosen]
        backwards = axis == 1 and n % 2 == 1
        found.append(sorted(share, key=lambda position: position[::-1], reverse=backwards))
    return found


def _paired_shares(positions, count):
    """The same for pairs of rows, which share their operand registers, one after the other."""
    size = -(-(1 + max(row for row, _ in positions)) // count)
    found = []
    for n in range(count):
        share = [position for position in positions if position[0] // size == n]
        order = sorted(share, key=lambda position: (position[0] // 2, position[1], position[0]))
        found.append(order[::-1] if n % 2 == 0 else order)
    return found


def place_squares(path: Path, device: "Device") -> bool:
    """Constrain the DP16KD of a design with squares to sites; returns whether it has sites now.

    A PE in a column with block RAM has a block for each product. The rows of PEs are shared out to
    the first lines of block RAM as `place_dsp_blocks` shares them out to the
    rows of DSP blocks: each line of block RAM lies behind a row of DSP blocks. So the blocks of a
    row of PEs are near each other, in the order of their columns.

    The blocks of all other memories get the free sites. Few sites are free, and nextpnr's
    legalization did not find them. The parts of each memory are spread across the device in their
    order, because they belong to rows or columns of PEs.

    A device with few lines has no sites here, and its blocks no constraints.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    pes = _blocks_of_pes(netlist, "DP16KD")
    columns, lines = device.ram_sites
    count = min(len(lines), len(device.dsp_sites[1]))
    if not pes or not count:
        return False
    sites = [[f"X{x + dx}/Y{y}/{block}" for x in columns for dx, block in RAM_GROUP] for y in lines]
    others = _others(netlist)
    free = sum(map(len, sites)) - sum(map(len, pes.values()))
    if len(others) > free or not _constrain(pes, _shares(pes, count), sites[:count]):
        return False
    taken = {cell["attributes"]["BEL"] for cells in pes.values() for _, cell in cells}
    across = [site for column in zip(*reversed(sites), strict=True) for site in column]
    free_sites = [site for site in across if site not in taken]
    for n, cell in enumerate(others):
        cell["attributes"]["BEL"] = free_sites[n * len(free_sites) // len(others)]
    write_text(path, json.dumps(netlist))
    return True


def _others(netlist):
    """The DP16KD outside the PEs, by the place of each part in its memory."""
    memories = {}
    for module in netlist["modules"].values():
        for name, cell in sorted(module["cells"].items(), key=lambda item: _numbers(item[0])):
            if cell["type"] == "DP16KD" and not PE.search(name):
                memory = re.sub(r"(bank|block|memory)_\d+", "", name)
                memories.setdefault(memory, []).append(cell)
    placed = [
        ((n + 0.5) / len(cells), name, cell)
        for name, cells in memories.items() for n, cell in enumerate(cells)
    ]
    return [cell for _, _, cell in sorted(placed, key=lambda part: part[:2])]


def _numbers(name):
    """The name as words and numbers, so that part 10 comes after part 9."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", name)]


def place_scalers(path: Path, device: "Device") -> None:
    """Constrain the MULT18X18D of the scalers in a netlist to sites.

    The scaler of a lane multiplies in four blocks, and adds their products. Each scaler gets a
    group of four sites, in the middle of a row of blocks in which nothing else is constrained.
    docs/boards.md has the length of the wires with and without these sites.

    Nothing changes if `place_dsp_blocks` constrained no block, or left no
    row free, or if the scalers do not fit into the row.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    scalers, taken = {}, set()
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            if cell["type"] != "MULT18X18D":
                continue
            if "BEL" in cell["attributes"]:
                taken.add(int(cell["attributes"]["BEL"].split("/")[1][1:]))
            elif match := _SCALER.search(name):
                scalers.setdefault(int(match[1]), []).append((name, cell))
    columns, rows = device.dsp_sites
    free = [y for y in rows if y not in taken]
    most = max(map(len, scalers.values()), default=0)
    fit = len(scalers) <= len(columns) and most <= len(DSP_GROUP)
    if not taken or not free or not fit:
        return
    first = (len(columns) - len(scalers)) // 2
    for x, (_, cells) in zip(columns[first:], sorted(scalers.items()), strict=False):
        in_order = sorted(cells, key=lambda cell: cell[0])
        for (_, cell), (dx, block) in zip(in_order, DSP_GROUP, strict=False):
            cell["attributes"]["BEL"] = f"X{x + dx}/Y{free[-1]}/{block}"
    write_text(path, json.dumps(netlist))


def place_memory(path: Path, device: "Device") -> dict[str, int]:
    """Constrain the DP16KD of a memory to sites; returns the region of each, by cell name.

    All rows of the array read all banks, but a bit of a row comes from the same bit of the banks.
    So the blocks with the same bits of all banks become neighbours in a line of blocks, beginning
    with the last line of the device. A region is one half of the blocks in a line.

    A device with few lines of blocks has no sites here, and its blocks no constraints.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    slices = {}  # of the word, by first bit: the blocks of all banks
    for module in netlist["modules"].values():
        for name, cell in module["cells"].items():
            match = _BLOCK.search(name)
            if cell["type"] == "DP16KD" and match:
                slices.setdefault(int(match[2]), []).append((int(match[1]), name, cell))
    columns, lines = device.ram_sites
    sites = [(x + dx, block) for x in columns for dx, block in RAM_GROUP]
    banks = max(map(len, slices.values()), default=1)
    in_line = len(sites) // banks  # slices
    if not slices or in_line * len(lines) < len(slices):
        return {}
    regions = {}
    for number, (_, blocks) in enumerate(sorted(slices.items())):
        line, place = divmod(number, in_line)
        first = place * banks + (len(sites) - in_line * banks) // 2
        for n, (_, name, cell) in enumerate(sorted(blocks, key=lambda block: block[0])):
            x, site = sites[first + n]
            cell["attributes"]["BEL"] = f"X{x}/Y{lines[-1 - line]}/{site}"
            regions[name] = 2 * line + (2 * place >= in_line)
    write_text(path, json.dumps(netlist))
    return regions


def operand_regions(path: Path) -> dict[str, int]:
    """A region for each DP16KD of the buffer of B, by cell name.

    The blocks have no fixed sites: nextpnr places each near the columns of PEs that it feeds, and
    so all over the device. Their numbers differ from the regions of `place_memory`.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    names = sorted(
        name for module in netlist["modules"].values() for name, cell in module["cells"].items()
        if cell["type"] == "DP16KD" and _OPERAND_BLOCK.search(name)
    )
    return {name: _MEMORY_REGIONS + number for number, name in enumerate(names)}


def place_map_reader(path: Path, device: "Device") -> None:
    """Constrain registers of the map reader to sites, behind the last line of block RAM.

    The placer spreads a large design over the whole device. Without sites, the map reader then lay
    up to 90 columns away from the sequencer that steps it. Only a register without logic before it
    can have a site of its own. The window origins of the panel's rows draw the map reader to the
    middle of the blocks of the memory that it reads. Row 0 has a multiplexer before its registers,
    and stays free.

    In a chain of registers the placer may put the middle one anywhere. So the fields of the job
    that have a copy get sites on the left of the origins, where the control is, and the copies on
    the right, beside the offsets that they move. The copies of the flags of the rows lie between.

    Nothing changes if `place_memory` constrained no block, or if there are no such registers.
    """
    netlist = json.loads(path.read_text(encoding="utf-8"))
    line, constrained = device.ram_sites[1][-1:], False
    for module in netlist["modules"].values():
        cells = module["cells"]
        blocks = [
            int(cell["attributes"]["BEL"].split("/")[0][1:]) for name, cell in cells.items()
            if cell["type"] == "DP16KD" and _BLOCK.search(name) and "BEL" in cell["attributes"]
        ]
        rows = {}
        for name, cell in cells.items():
            match = _ORIGIN.search(name)
            if cell["type"] == "TRELLIS_FF" and match and match[1] != "0":
                rows.setdefault(int(match[1]), []).append(name)
        if not rows or not blocks:
            continue
        first = sum(blocks) // len(blocks) - _ORIGIN_COLUMNS * len(rows) // 2
        behind = first + _ORIGIN_COLUMNS * len(rows)
        for n, (_, names) in enumerate(sorted(rows.items())):
            _fill(cells, names, first + _ORIGIN_COLUMNS * n, line[0] + 2, _ORIGIN_COLUMNS)
        fields, copies, steps, flags = _copied_registers(cells)
        _fill(cells, fields, first - 3 * _ORIGIN_COLUMNS, line[0] + 2, 2 * _ORIGIN_COLUMNS)
        _fill(cells, flags, first - 2, line[0] + 2, 1)
        _fill(cells, copies, behind, line[0] + 2, 2 * _ORIGIN_COLUMNS)
        _fill(cells, steps, behind + 2 * _ORIGIN_COLUMNS, line[0] + 2, 1)
        constrained = True
    if constrained:
        write_text(path, json.dumps(netlist))


def _copied_registers(cells):
    """Names of registers: fields of the job that have a copy, these copies, the copies of the step,
    and those of the flags of the rows. A copy has no clock enable, and a register before it.
    """
    drivers = {
        cell["connections"]["Q"][0]: name for name, cell in cells.items()
        if cell["type"] == "TRELLIS_FF"
    }
    fields, copies, steps, flags = [], [], [], []
    for name, cell in cells.items():
        if cell["type"] != "TRELLIS_FF" or "map_reader" not in name:
            continue
        source = drivers.get(cell["connections"]["DI"][0])
        if source is None or cell["parameters"].get("CEMUX", "").strip() != "1":
            continue
        if _USED.search(source):
            flags.append(name)
        elif _STEP_COPY.search(name):
            steps.append(name)
        elif _FIELD.search(source):
            fields.append(source)
            copies.append(name)
    return fields, copies, steps, flags


def _fill(cells, names, x, y, columns):
    """Sites for registers: tiles of some columns from line to line, then the next site of each."""
    for place, name in enumerate(sorted(names)):
        site, tile = divmod(place, columns * _ORIGIN_LINES)
        dy, dx = divmod(tile, columns)
        piece, side = divmod(site, 2)  # four slices of two registers
        cells[name]["attributes"]["BEL"] = f"X{x + dx}/Y{y + dy}/SLICE{'ABCD'[piece]}.FF{side}"
