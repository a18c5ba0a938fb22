"""Where the values of a map come from, as grids of pixels that a layer can copy at once."""

import dataclasses
from dataclasses import dataclass

import numpy as np

__all__ = ["Cover", "Grid", "MixedSources", "Origins", "Place", "TooManyGrids", "grids_of"]


class TooManyGrids(Exception):
    """The values of a map have no pattern that few layers follow."""


class MixedSources(Exception):
    """A pixel has values of several maps."""


@dataclass(frozen=True, eq=False)
class Origins:
    """Where each value of a map [height, width, channels] comes from.

    Attributes
    ----------
    source : int array
        The map; -1 for constants.
    row, column, channel : int arrays
        The place in that map.
    value : int array
        Of constants.
    sizes : tuple of (int, int, int)
        Of the maps.
    """

    source: np.ndarray
    row: np.ndarray
    column: np.ndarray
    channel: np.ndarray
    value: np.ndarray
    sizes: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, index: np.ndarray, value: np.ndarray, sizes) -> "Origins":
        """Return the places of ``index``, which counts the values of all maps; -1: a constant."""
        ends = np.cumsum([height * width * channels for height, width, channels in sizes])
        source = np.where(index < 0, -1, np.searchsorted(ends, index, side="right"))
        row, column, channel = (np.zeros(index.shape, np.int64) for _ in range(3))
        for number, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            own = source == number
            places = np.unravel_index(index[own] - (end - np.prod(size)), size)
            row[own], column[own], channel[own] = places
        return cls(source, row, column, channel, value, tuple(sizes))

    def channels(self, first: int, last: int) -> "Origins":
        """Return the origins of a range of channels."""
        return self._replaced(lambda values: values[..., first:last])

    def _replaced(self, function):
        names = "source", "row", "column", "channel", "value"
        return dataclasses.replace(self, **{n: function(getattr(self, n)) for n in names})

    def boundaries(self) -> list[int]:
        """Return the channels that do not follow the channel before, in the same source pixel."""
        follows = self.source[..., 1:] == self.source[..., :-1]
        for values, step in ((self.row, 0), (self.column, 0), (self.channel, 1)):
            follows &= values[..., 1:] == values[..., :-1] + step
        constant = (self.source[..., 1:] < 0) & (self.source[..., :-1] < 0)
        return [int(n) + 1 for n in np.flatnonzero(~(follows | constant).all((0, 1)))]

    def staged(self, offsets: list[int], channels: int) -> "Origins":
        """Return the origins in one map, with source n from channel ``offsets[n]`` on."""
        moved = self.channel + np.where(self.source < 0, 0, np.take(offsets, self.source))
        height, width, _ = self.sizes[0]
        return dataclasses.replace(
            self, channel=moved, source=np.minimum(self.source, 0),
            sizes=((height, width, channels),),
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """Pixels of a map that have their values from pixels of another one, in equal distances.

    Attributes
    ----------
    first, step, count : (int, int)
        First pixel, distances, and numbers of pixels: rows and columns.
    source : int
        The map; -1: all values are constants.
    start : (int, int)
        Row and column of the first tap of the first pixel.
    line, pixel : (int, int)
        Rows and columns of the source from row to row of the grid, and from pixel to pixel.
    rows, columns, channels : int arrays
        For each channel the tap, counted from the first one, and the channel; ``channels`` is -1
        for a constant.
    values : int array
        Of constants.
    outside : int or None
        The value of the pixels whose taps lie outside the source; None if there are none.
    """

    first: tuple[int, int]
    step: tuple[int, int]
    count: tuple[int, int]
    source: int
    start: tuple[int, int]
    line: tuple[int, int]
    pixel: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    channels: np.ndarray
    values: np.ndarray
    outside: int | None


def grids_of(origins: Origins, most: int) -> list[Grid]:
    """Return at most ``most`` grids that have all pixels of a map.

    Raises TooManyGrids if they are more, and MixedSources if a pixel has values of several maps.
    """
    height, width, _ = origins.source.shape
    constant = origins.source < 0
    source = origins.source.max(2)
    if (constant | (origins.source == source[..., None])).sum() < constant.size:
        raise MixedSources
    far = 1 << 40
    row = np.where(constant, far, origins.row).min(2)
    column = np.where(constant, far, origins.column).min(2)
    taps = [
        np.where(constant, 0, values - first[..., None])
        for values, first in ((origins.row, row), (origins.column, column))
    ]
    channel = np.where(constant, -1, origins.channel)
    value = np.where(constant, origins.value, 0)
    kinds, first_of, several = _kinds(*taps, channel, value, source)
    if several > most:
        raise TooManyGrids
    uniform = constant.all(2) & (value == value[..., :1]).all(2)
    covered, found = np.zeros((height, width), bool), []
    order = np.argsort(source.ravel()[first_of] < 0, kind="stable")
    for kind in order:
        members = kinds == kind
        y, x = divmod(int(first_of[kind]), width)
        number = int(source[y, x])
        rows, columns = (tap[y, x] for tap in taps)
        # Pixels of one constant value may lie outside the source.
        constants = set(value[y, x][channel[y, x] < 0].tolist())
        fills = set(value[..., 0][uniform].tolist()) if number >= 0 else set()
        fills = fills & constants if constants else fills
        fill = min(fills) if fills and len(constants) < 2 else None
        cover = Cover(
            members, row, column, uniform & (value[..., 0] == (far if fill is None else fill)),
            (rows.max() + 1, columns.max() + 1), origins.sizes[number][:2],
        )
        while (members & ~covered).any():
            if len(found) == most:
                raise TooManyGrids
            place = cover.largest(covered)
            covered[np.ix_(*place.lines())] = True
            found.append(Grid(
                place.first, place.step, place.count, number, place.start, place.line,
                place.pixel, rows, columns, channel[y, x], value[y, x],
                fill if place.outside else None,
            ))
    return found


def _kinds(rows, columns, channel, value, source):
    """Return numbers of the pixels that take their values in equal ways, and where each is first.

    The third result is the least number of grids: those of constants may join others.
    """
    sides = [int(part.max()) + 1 for part in (columns, channel)]
    key = np.where(channel < 0, -129 - value, (rows * sides[0] + columns) * sides[1] + channel)
    low, span = int(key.min()), int(key.max() - key.min()) + 1
    kinds = np.unique(source, return_inverse=True)[1].reshape(-1)
    for part in (key - low).reshape(-1, key.shape[2]).T:
        if part[0] != part[-1] or (part != part[0]).any():
            kinds = np.unique(kinds * span + part, return_inverse=True)[1].reshape(-1)
    _, first_of, kinds = np.unique(kinds, return_index=True, return_inverse=True)
    constants = int((source.ravel()[first_of] < 0).sum())
    return kinds.reshape(source.shape), first_of, max(constants, len(first_of) - constants)


@dataclass(frozen=True)
class Place:
    """The first fields of a `Grid`; ``outside``: some pixels are outside the source."""

    first: tuple[int, int]
    step: tuple[int, int]
    count: tuple[int, int]
    start: tuple[int, int]
    line: tuple[int, int]
    pixel: tuple[int, int]
    outside: bool

    def lines(self):
        """Return the rows and the columns of all pixels."""
        return tuple(
            first + step * np.arange(count)
            for first, step, count in zip(self.first, self.step, self.count, strict=True)
        )


class Cover:
    """Grids of the pixels of one kind.

    Parameters
    ----------
    members : bool array
        The pixels.
    row, column : int arrays
        Where the first tap of each is.
    free : bool array
        Pixels that may join if all their taps lie outside the source.
    extent : (int, int)
        Rows and columns of the taps.
    size : (int, int)
        Of the source.
    """

    def __init__(self, members, row, column, free, extent, size):
        self._members, self._starts, self._free = members, (row, column), free
        self._extent, self._size = extent, size

    def largest(self, covered) -> Place:
        """Return a large grid with the first pixel that is not covered."""
        y, x = divmod(int((self._members & ~covered).argmax()), covered.shape[1])
        found = []
        for axis in (1, 0):  # along the rows first, or along the columns first
            steps = self._along(y, x, axis, np.array([0]), (0, 0), covered)
            across = self._along(y, x, 1 - axis, steps[0] * steps[2], steps[1], covered)
            pair = (across, steps) if axis == 1 else (steps, across)
            found.append((across[3], self._place(y, x, *pair)))
        return max(found, key=lambda entry: entry[0])[1]

    def _place(self, y, x, lines, pixels):
        (row_step, line, rows, _), (column_step, pixel, columns, _) = lines, pixels
        y, x = y + rows[0] * row_step, x + columns[0] * column_step
        start = tuple(
            int(starts[y - rows[0] * row_step, x - columns[0] * column_step])
            + rows[0] * a + columns[0] * b
            for starts, a, b in zip(self._starts, line, pixel, strict=True)
        )
        place = Place(
            (int(y), int(x)), (row_step, column_step), (len(rows), len(columns)),
            tuple(int(n) for n in start), line, pixel, False,
        )
        inside = self._members[np.ix_(*place.lines())].all()
        return dataclasses.replace(place, outside=not inside)

    def _along(self, y, x, axis, others, other_step, covered):
        """Return the best step along an axis: it, its distance in the source, the numbers.

        ``others`` are the distances along the other axis that already belong to the grid, and
        ``other_step`` the distance in the source of the numbers of these.
        """
        length, here = self._members.shape[axis], (y, x)[axis]
        step_of_others = _step(others)
        best = (1, (0, 0), np.array([0]), 0, 0)
        for step in range(1, length):
            if ((length - 1) // step + 1) * len(others) <= best[3] and best[4]:
                break  # longer steps have no more pixels
            for distance in self._distances(y, x, axis, step, other_step):
                numbers = np.arange(-(here // step), (length - 1 - here) // step + 1)
                fits, new = self._fits(
                    y, x, axis, numbers, step, distance, others, step_of_others, other_step,
                    covered,
                )
                low, high = _run(fits, here // step)
                rank = int(new[low:high].sum()), any(distance)
                if rank > (best[3], best[4]):
                    best = step, distance, numbers[low:high], *rank
        if not best[3]:
            fits, new = self._fits(
                y, x, axis, np.array([0]), 1, (0, 0), others, step_of_others, other_step, covered
            )
            best = 1, (0, 0), np.array([0]), int(new.sum()), 0
        return best[:4]

    def _distances(self, y, x, axis, step, other_step):
        """Yield distances in the source for a step: along an axis that the others leave free."""
        for sign in (1, -1):
            to = (y + sign * step, x) if axis == 0 else (y, x + sign * step)
            if not 0 <= to[axis] < self._members.shape[axis]:
                continue
            if self._members[to]:
                a, b = (sign * int(starts[to] - starts[y, x]) for starts in self._starts)
                if not (a and b) and not (a and other_step[0]) and not (b and other_step[1]):
                    yield a, b
            elif self._free[to]:
                rows = bool(other_step[1]) or (axis == 0 and not other_step[0])
                yield (self._size[0], 0) if rows else (0, self._size[1])

    def _fits(
        self, y, x, axis, numbers, step, distance, others, step_of_others, other_step, covered
    ):
        """Return which numbers along an axis fit, and how many new pixels each of them has."""
        count = others // step_of_others
        at = [y, x]
        moved = numbers[:, None] * step, others[None, :]
        rows, columns = moved if axis == 0 else moved[::-1]
        rows, columns = np.broadcast_arrays(at[0] + rows, at[1] + columns)
        starts = [
            values[y, x] + numbers[:, None] * a + count[None, :] * b
            for values, a, b in zip(self._starts, distance, other_step, strict=True)
        ]
        members, out = self._members[rows, columns], np.zeros(rows.shape, bool)
        same = members.copy()
        for values, start, extent, size in zip(
            self._starts, starts, self._extent, self._size, strict=True
        ):
            same &= values[rows, columns] == start
            out |= (start + extent <= 0) | (start >= size)
        fits = (same | (self._free[rows, columns] & out)).all(1)
        return fits, (fits[:, None] & members & ~covered[rows, columns]).sum(1)


def _step(others):
    """Return the distance of neighbours in a sequence."""
    return int(others[1] - others[0]) if len(others) > 1 else 1


def _run(fits, place):
    """Return the ends of the sequence of fitting numbers around a place."""
    wrong = np.flatnonzero(~fits)
    low = wrong[wrong < place].max(initial=-1) + 1
    return low, wrong[wrong > place].min(initial=len(fits))
