"""Stripes: layers whose maps do not fit the memory together are computed some rows at a time.

    for stripe in stripes of the rows of the last map:
        for layer in layers: the rows of its output that the stripe needs

Only the maps that the first layers read and that the last ones write are whole. All maps between
them have the rows of one stripe. A window of several rows overlaps the next stripe's, so both
stripes compute the rows between them. The results are the same bytes, for more array steps.
"""

import dataclasses
from dataclasses import dataclass

from weft.models.network_core.layers import GraphSegment, NetworkCoreGraph, NetworkLayer, NetworkMap
from weft.models.network_core.map_pitches import MapView
from weft.models.network_core.memory import lives
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import DESCRIPTOR_BYTES

__all__ = ["striped"]

_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # stripes that are tried
_LAYERS = 32  # of a region at most
_JOB_CYCLES = 60  # of a job, beside its steps, about
_LAYER_DESCRIPTORS = 3  # a job, and loads of weights and parameters

Rows = tuple[int, int]


class _Unfit(Exception):
    """These layers cannot be computed in stripes."""


def striped(
    graph: NetworkCoreGraph, config: NetworkCoreConfig, room: int
) -> NetworkCoreGraph | None:
    """Return the graph with stripes whose maps need ``room`` vectors at most, if there is one.

    Of all ways to divide the layers into regions with stripes, and layers without, it is the one
    with the fewest cycles, about. Maps are counted without gaps: placed, they may need more.
    The descriptors of the jobs that are added need space in the same memory, unless the core has a
    program memory.
    """
    depth = config.array.depth
    each = 0 if config.program_words else _LAYER_DESCRIPTORS * DESCRIPTOR_BYTES // depth
    for tenths in range(10 if each else 1):
        regions = _regions(graph, config, room - room * tenths // 10)
        if regions is None:
            return None
        made = graph
        for layers, count in reversed(regions):  # so that the numbers of the others stay
            made = _Region(made, layers).graph(count)
        added = (len(made.layers) - len(graph.layers)) * each
        if max(_needs(made, depth)) + added <= room:
            return made
    return None


def _regions(graph, config, room):
    """Return the layers of each region, and the number of its stripes; None if nothing fits.

    It is the shortest way from the first layer to the last one.
    """
    depth = config.array.depth
    needs, ends = _needs(graph, depth), len(graph.layers)
    costs = [_LayerCost.of(layer, graph.maps[layer.x].channels, config) for layer in graph.layers]
    starts = {segment.layers.start for segment in graph.segments} | {ends}
    bounds = [n for n in range(ends + 1) if n in starts or graph.layers[n - 1].operators]
    best: dict[int, tuple[int, list]] = {0: (0, [])}
    for place, first in enumerate(bounds[:-1]):
        if first not in best:
            continue
        cost, regions = best[first]

        def reach(stop, more, region=(), cost=cost, regions=regions):
            if stop not in best or best[stop][0] > cost + more:
                best[stop] = cost + more, [*regions, *region]

        after = bounds[place + 1]
        if max(needs[first:after]) <= room:
            reach(after, sum(
                cost.cycles(layer.pixels * layer.parts) for layer, cost in zip(
                    graph.layers[first:after], costs[first:after], strict=True
                )
            ))
        for stop in bounds[place + 1 :]:
            if stop - first <= _LAYERS and max(needs[first:stop]) > room:
                found = _fewest(graph, range(first, stop), depth, room, costs)
                if found:
                    reach(stop, found[0], [(range(first, stop), found[1])])
            if stop in starts:
                break
    return best[ends][1] if ends in best else None


def _fewest(graph, layers, depth, room, costs):
    """Return the cycles and the number of stripes of a region; None if its maps do not fit."""
    try:
        region = _Region(graph, layers)
        counts = [count for count in _COUNTS if count <= region.height]
        if not counts or region.cost(counts[-1], depth, costs)[0] > room:
            return None
        for count in counts:
            need, cost = region.cost(count, depth, costs)
            if need <= room:
                return cost, count
    except _Unfit:
        pass
    return None


def _needs(graph, depth):
    """Return for each layer the vectors of the maps that are in use, without gaps."""
    needs = [0] * len(graph.layers)
    for root, (first, last) in _root_lives(graph).items():
        for layer in range(first, last + 1):
            needs[layer] += _vectors(graph.maps[root], depth)
    return needs


def _root_lives(graph):
    """Return the first and the last layer of each root."""
    first_use, last_use = lives(graph)
    found: dict[int, Rows] = {}
    for number in first_use.keys() | last_use.keys():
        root, last = graph.root(number), len(graph.layers) - 1
        life = first_use.get(number, last), last_use.get(number, 0)
        old = found.get(root, life)
        found[root] = min(old[0], life[0]), max(old[1], life[1])
    return found


def _vectors(network_map, depth, rows=None):
    """Return the vectors of a map, or of some of its rows."""
    rows = network_map.height if rows is None else rows
    return rows * network_map.width * network_map.vectors(depth)


@dataclass(frozen=True)
class _LayerCost:
    """What the jobs of a layer take, about: for each panel of ``rows`` pixels, and for the loads.
    """

    rows: int
    panel: int
    load: int

    @classmethod
    def of(cls, layer, channels, config):
        """Of a layer that reads a map of ``channels``."""
        array, sizes = config.array, LayerWords.of(layer, channels, config)
        chunk = array.scale_cycles * (1 if layer.addition is None else 2)
        panel = sizes.tiles * max(sizes.tile_words, array.rows * sizes.row_lines * chunk)
        vectors = sizes.vectors(sizes.words(sizes.tiles), config)
        load = 0 if sizes.filled else vectors // config.read_vectors
        return cls(array.rows, panel, load)

    def cycles(self, pixels):
        """Return the cycles for some pixels; weights load while another job computes."""
        return max(-(-pixels // self.rows) * self.panel, self.load) + _JOB_CYCLES


@dataclass(frozen=True)
class _Lines:
    """The rows of a map that lies in a root: row y is row ``first + y * step`` of the root."""

    root: int
    first: int
    step: int
    view: MapView

    @classmethod
    def of(cls, graph, number):
        """Of a map; _Unfit if its rows are no rows of the root."""
        view = graph.view(number)
        size = graph.maps[number].size
        straight = view.line[1] == 0 or size[0] == 1
        if not straight or view.pixel[0] or view.line[0] < 1:
            raise _Unfit  # its rows are columns
        if view.column + (size[1] - 1) * view.pixel[1] >= graph.maps[view.whole].width:
            raise _Unfit  # a column beyond the last one is a pixel of the next row
        return cls(view.whole, view.row, view.line[0], view)

    def rows_in_root(self, rows: Rows) -> Rows:
        """Return the rows of the root between the first and the last one of ``rows``."""
        return self.first + rows[0] * self.step, self.first + (rows[1] - 1) * self.step + 1

    def rows_of(self, wanted: Rows, height: int) -> Rows:
        """Return the rows of the map that are rows ``wanted`` of the root."""
        low, high = (-(-(row - self.first) // self.step) for row in wanted)
        return max(0, low), min(height, high)


class _Region:
    """Layers that stripes compute, and the maps between them.

    Parameters
    ----------
    graph : NetworkCoreGraph
    layers : range
        Of one list. The last layer completes an operator, and so does the one before the first.

    Raises _Unfit if the layers have results for more than one map, or a layer reads or writes
    other things than rows.
    """

    def __init__(self, graph: NetworkCoreGraph, layers: range):
        self._graph, self.layers = graph, layers
        maps = graph.maps
        own = [graph.layers[n] for n in layers]
        for layer in own:
            window = layer.window
            sizes = maps[layer.y].size[:2], maps[layer.x].size[:2]
            has_no_rows = layer.parts > 1 or layer.b >= 0
            if has_no_rows or window.spread != (1, 1) or sizes != (window.output, window.input):
                raise _Unfit
        self._lines = {
            number: _Lines.of(graph, number)
            for layer in own for number in (*layer.reads, layer.y)
        }
        written = {self._lines[layer.y].root for layer in own}
        outside = [layer for n, layer in enumerate(graph.layers) if n not in layers]
        later = {
            graph.root(number) for layer in graph.layers[layers.stop :]
            for number in layer.reads
        }
        later |= {
            graph.root(number) for segment in graph.segments for number in segment.results.values()
        }
        results = written & later
        if len(results) != 1:
            raise _Unfit
        self._result, = results
        self._between = written - results
        before = {graph.root(layer.y) for layer in outside}
        read = {self._lines[n].root for layer in own for n in layer.reads}
        forms = any(maps[root].form is not None for root in written)
        if self._between & before or self._result in read or forms:
            raise _Unfit

    @property
    def height(self) -> int:
        """Rows of the map that the layers complete."""
        return self._graph.maps[self._result].height

    def cost(self, count: int, depth: int, costs: list["_LayerCost"]) -> tuple[int, int]:
        """Return the vectors that the maps need, and the cycles, if each layer has ``costs``."""
        graph = self._graph
        whole = sum(
            _vectors(graph.maps[root], depth)
            for root, (first, last) in _root_lives(graph).items()
            if root not in self._between and first < self.layers.stop and last >= self.layers.start
        )
        peak = cost = 0
        for wanted in self._stripes(count):
            needed, rows = self._rows(wanted)
            uses: dict[int, list[int]] = {}
            for number in rows:
                layer = graph.layers[number]
                first, stop = rows[number]
                cost += costs[number].cycles((stop - first) * layer.window.output[1])
                for place in (*layer.reads, layer.y):
                    uses.setdefault(self._lines[place].root, []).append(number)
            sizes = {
                root: _vectors(graph.maps[root], depth, stop - first)
                for root, (first, stop) in needed.items() if root in self._between
            }
            peak = max(peak, max((
                sum(size for root, size in sizes.items()
                    if min(uses[root]) <= number <= max(uses[root]))
                for number in rows
            ), default=0))
        return whole + peak, cost

    def _stripes(self, count):
        """Yield the rows of each stripe of the map that the layers complete."""
        for n in range(count):
            yield n * self.height // count, (n + 1) * self.height // count

    def _rows(self, wanted: Rows) -> tuple[dict[int, Rows], dict[int, Rows]]:
        """Return the rows of each root, and of each layer's output, that a stripe needs."""
        needed, rows = {self._result: wanted}, {}
        for number in reversed(self.layers):
            layer = self._graph.layers[number]
            own = self._lines[layer.y]
            if own.root not in needed:
                continue
            made = own.rows_of(needed[own.root], layer.window.output[0])
            if made[0] >= made[1]:
                continue
            rows[number] = made
            self._need(needed, layer.x, _read(layer.window, made))
            if layer.added >= 0:
                self._need(needed, layer.added, self._added(layer, made))
        return needed, rows

    def _added(self, layer, rows):
        """Return the rows of the added map; one row is added to all."""
        return rows if self._graph.maps[layer.added].height > 1 else (0, 1)

    def _need(self, needed, number, rows):
        """A layer reads rows of a map."""
        lines = self._lines[number]
        first, stop = lines.rows_in_root(rows)
        old = needed.get(lines.root, (first, stop))
        needed[lines.root] = min(old[0], first), max(old[1], stop)

    def graph(self, count: int) -> NetworkCoreGraph:
        """Return the graph whose layers are computed in ``count`` stripes."""
        maps = list(self._graph.maps)
        made: list[NetworkLayer] = []
        for wanted in self._stripes(count):
            needed, rows = self._rows(wanted)
            stripes = {}
            for root, (first, stop) in needed.items():
                if root in self._between:
                    stripes[root] = len(maps)
                    maps.append(dataclasses.replace(maps[root], tensor=-1, height=stop - first))
            made += [
                self._layer(maps, self._graph.layers[number], rows[number], needed, stripes)
                for number in self.layers if number in rows
            ]
        return self._joined(made, maps, count)

    def _layer(self, maps, layer, rows, needed, stripes):
        """Return a layer that computes only some rows of its output."""
        window = layer.window
        read = _read(window, rows)
        top = rows[0] * window.stride[0] - window.padding[0]
        end = top + (rows[1] - rows[0] - 1) * window.stride[0] + _reach(window)
        padding = (read[0] - top, end - read[1], *window.padding[2:])
        added = layer.added
        if added >= 0:
            added = self._part(maps, added, self._added(layer, rows), needed, stripes)
        return dataclasses.replace(
            layer, operators=(), macs=0, left_out=0, result=-1, added=added,
            x=self._part(maps, layer.x, read, needed, stripes),
            y=self._part(maps, layer.y, rows, needed, stripes),
            window=dataclasses.replace(
                window, padding=padding, input=(read[1] - read[0], window.input[1]),
                output=(rows[1] - rows[0], window.output[1]),
            ),
        )

    def _part(self, maps, number, rows, needed, stripes):
        """Return the map that has some rows of a map: itself, a stripe, or a view of one."""
        lines, whole = self._lines[number], self._graph.maps[number]
        root, first = stripes.get(lines.root, lines.root), 0
        if root != lines.root:
            first = needed[lines.root][0]
        row = lines.first + rows[0] * lines.step - first
        view = dataclasses.replace(lines.view, whole=root, row=row)
        size = rows[1] - rows[0], whole.width, whole.channels
        if view == MapView(root) and maps[root].size == size:
            return root
        maps.append(NetworkMap(-1, *size, view=view))
        return len(maps) - 1

    def _joined(self, made, maps, count):
        """Return the graph with the layers that were made, as one step of all their operators."""
        graph, old = self._graph, self._graph.layers
        own = [old[n] for n in self.layers]
        entries = [
            (name, place) for layer in own
            for name, place in zip(layer.operators, layer.position, strict=False)
        ]
        for segment in graph.segments:
            entries += [
                (node.operator, place) for node, _, number in segment.renamed
                if number is not None and graph.root(number) in self._between
                for place in node.position
            ]
        entries.sort(key=lambda entry: entry[1])
        made[-1] = dataclasses.replace(
            made[-1], operators=tuple(name for name, _ in entries),
            position=tuple(place for _, place in entries), name=own[-1].name,
            result=self._result, macs=sum(layer.macs for layer in own),
            left_out=sum(layer.left_out for layer in own),
        )
        layers = (*old[: self.layers.start], *made, *old[self.layers.stop :])
        more = len(made) - len(own)
        note = (
            f"{len(entries)} operators, {entries[0][0]} {entries[0][1]} to {entries[-1][0]}"
            f" {entries[-1][1]}, are computed in {count} stripes of rows: their maps do not fit"
            " the memory together"
        )
        return _without_unused(dataclasses.replace(
            graph, layers=layers, maps=tuple(maps), notes=(*graph.notes, note),
            segments=tuple(self._moved(segment, more) for segment in graph.segments),
        ))

    def _moved(self, segment: GraphSegment, more: int):
        """Return a list, with ``more`` layers in the list of the region."""
        first, stop = segment.layers.start, segment.layers.stop
        renamed = tuple(
            entry for entry in segment.renamed
            if entry[2] is None or self._graph.root(entry[2]) not in self._between
        )
        return dataclasses.replace(
            segment, renamed=renamed,
            layers=range(
                first + more * (first > self.layers.start), stop + more * (stop > self.layers.start)
            ),
        )


def _reach(window):
    """Rows from the first to the last tap of a window."""
    return (window.kernel[0] - 1) * window.dilation[0] + 1


def _read(window, rows: Rows) -> Rows:
    """Return the rows of its input that a layer reads for some rows of its output."""
    top = rows[0] * window.stride[0] - window.padding[0]
    end = top + (rows[1] - rows[0] - 1) * window.stride[0] + _reach(window)
    first, stop = max(0, top), min(window.input[0], end)
    if first >= stop:
        raise _Unfit  # all taps lie outside the map
    return first, stop


def _without_unused(graph: NetworkCoreGraph) -> NetworkCoreGraph:
    """Return the graph without the maps that nothing uses any more."""
    used: set[int] = set()
    todo = [n for layer in graph.layers for n in (*layer.reads, layer.y, layer.result)]
    todo += [n for segment in graph.segments for n in segment.results.values()]
    todo += [n for segment in graph.segments for _, _, n in segment.renamed if n is not None]
    while todo:
        number = todo.pop()
        if number < 0 or number in used:
            continue
        used.add(number)
        view = graph.maps[number].view
        todo.append(-1 if view is None else view.whole)
    place = {number: n for n, number in enumerate(sorted(used))} | {-1: -1}
    maps = []
    for number in sorted(used):
        entry = graph.maps[number]
        if entry.view is not None:
            view = dataclasses.replace(entry.view, whole=place[entry.view.whole])
            entry = dataclasses.replace(entry, view=view)
        maps.append(entry)
    return dataclasses.replace(
        graph, maps=tuple(maps),
        layers=tuple(
            dataclasses.replace(
                layer, x=place[layer.x], y=place[layer.y], b=place[layer.b],
                added=place[layer.added], result=place[layer.result],
            ) for layer in graph.layers
        ),
        segments=tuple(
            dataclasses.replace(
                segment, results={t: place[n] for t, n in segment.results.items()},
                renamed=tuple(
                    (node, t, n if n is None else place[n]) for node, t, n in segment.renamed
                ),
            ) for segment in graph.segments
        ),
    )
