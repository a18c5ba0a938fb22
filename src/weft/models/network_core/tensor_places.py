"""Where each tensor of a network is: in a map of the core, or on the host; and PAD as a view."""

import copy
import dataclasses
import math
from collections.abc import Sequence

from weft.models.ir import Gemm, Graph, Host, Tensor
from weft.models.network_core.layers import (
    GraphSegment,
    InputForm,
    NetworkMap,
    Refusal,
    WrongMap,
)
from weft.models.network_core.map_pitches import MapView

__all__ = ["PaddedMaps", "TensorPlaces", "written_size"]

class PaddedMaps:
    """The outputs of PAD that no memory holds: convolutions read the map before PAD.

    A tap outside the map reads the zero point, so PAD must have this value.
    """

    def __init__(self):
        self._nodes: dict[int, Host] = {}

    def take(self, node: Host, graph: Graph) -> bool:
        """Take a PAD of rows and columns, if only convolutions with this zero point read it."""
        y, padding = node.outputs[0], node.attributes["padding"]
        readers = [other for other in graph.nodes if y in other.inputs]
        if len(node.inputs) != 1 or len(padding) != 4 or any((*padding[0], *padding[3])):
            return False
        if y in graph.results or not readers or not all(
            isinstance(other, Gemm) and other.window is not None and other.layout == "NHWC"
            and other.window.spread == (1, 1) and other.x_zero == node.attributes["value"]
            for other in readers
        ):
            return False
        self._nodes[y] = node
        return True

    def inside(self, gemm: Gemm) -> tuple[Gemm, Host | None]:
        """Return a convolution with the padding in its window, and the PAD; or the Gemm itself."""
        node = self._nodes.get(gemm.x)
        if node is None:
            return gemm, None
        (_, (top, bottom), (left, right), _), window = node.attributes["padding"], gemm.window
        before = window.padding
        window = dataclasses.replace(
            window, input=(window.input[0] - top - bottom, window.input[1] - left - right),
            padding=(before[0] + top, before[1] + bottom, before[2] + left, before[3] + right),
        )
        x = node.inputs[0]
        return dataclasses.replace(gemm, x=x, inputs=(x, *gemm.inputs[1:]), window=window), node


_STATE = "maps", "first_list", "_place", "_alias", "_forms", "_host"


class TensorPlaces:
    """The maps of a network, and the first list that can read each of them.

    Lists are numbered from 0. A layer of list n reads the maps of lists up to n, and the values
    that the host has before list n. The host has the results of list n before list n + 1.

    Parameters
    ----------
    tensors : sequence of Tensor
    depth : int
        Channels of a vector.

    Attributes
    ----------
    maps : list of NetworkMap
    first_list : list of int
        For each map: the list that computes it. For a map that the host writes: the first list
        that can read it.
    variables : dict of int to int
        By tensor, the maps of variables that stay in the memory. All lists can read them.
    """

    def __init__(self, tensors: Sequence[Tensor], depth: int, variables: Sequence[int] = ()):
        self.maps: list[NetworkMap] = []
        self.first_list: list[int] = []
        self._tensors, self._depth = tensors, depth
        self._place: dict[int, int] = {}  # the map of a tensor that the core computes
        self._alias: dict[int, int] = {}  # tensors that a reshape only renames
        self._forms: dict[InputForm, int] = {}
        self._host: dict[int, int] = {}  # by tensor of the host: the first list that can read it
        self.variables: dict[int, int] = {}
        for number in variables:
            self.variables[number] = self.computed(number, written_size(tensors[number].shape), 0)

    @property
    def forms(self) -> tuple[InputForm, ...]:
        """The maps that the host writes."""
        return tuple(self._forms)

    def root(self, number: int) -> int:
        """Return the tensor that ``number`` renames, or itself."""
        return self._alias.get(number, number)

    def map_of(self, number: int) -> int | None:
        """Return the map that has a tensor; None if the host has it."""
        return self._place.get(self.root(number))

    def stored(self, number: int) -> tuple[int, int, int] | None:
        """Return the size of the map that has a tensor; None if the host has it."""
        map_number = self.map_of(number)
        return None if map_number is None else self.maps[map_number].size

    def host_list(self, numbers) -> int:
        """Return the first list that can follow an operator of the host with these inputs."""
        return max((self._host_list(n) for n in numbers if n >= 0), default=0)

    def _host_list(self, number):
        map_number = self.map_of(number)
        if map_number is None:
            return self._host.get(self.root(number), 0)
        return self.first_list[map_number] + 1

    def core_list(self, numbers) -> int:
        """Return the first list that can compute an operator with these inputs."""
        places = ((self.map_of(number), number) for number in numbers if number >= 0)
        return max(
            (self._host.get(self.root(n), 0) if map_number is None
             else self.first_list[map_number] for map_number, n in places),
            default=0,
        )

    def begins_list(self, numbers) -> bool:
        """Whether an operator with these inputs would begin a list, and not the first one."""
        first = self.core_list(numbers)
        map_numbers = [self.map_of(number) for number in numbers if number >= 0]
        return first > 0 and all(
            n is None or self.first_list[n] < first for n in map_numbers
        )

    def on_host(self, numbers, first_list: int) -> None:
        """The host computes tensors, before list ``first_list``."""
        self._host.update(dict.fromkeys(numbers, first_list))

    def rename(self, node: Host) -> None:
        """The output of a node has the values of its input."""
        self._alias[node.outputs[0]] = self.root(node.inputs[0])

    def written(self, form: InputForm) -> int:
        """Return the map that the host writes in this form, the same one for equal forms."""
        form = dataclasses.replace(form, tensor=self.root(form.tensor))
        if form not in self._forms:
            self._forms[form] = self._append(
                NetworkMap(form.tensor, *form.map_size, form), self._host_list(form.tensor)
            )
        return self._forms[form]

    def input(self, number: int, size: tuple[int, int, int]) -> int:
        """Return the map of a tensor that a layer reads, of ``size``.

        Raises WrongMap if the core has it as another map, and no view of that one has ``size``.
        """
        map_number = self.map_of(number)
        if map_number is None:
            first = self._tensors[number].channels_first
            return self.written(InputForm(number, *size, channels_first=first))
        return self.reshaped(map_number, size)

    def reshaped(self, map_number: int, size: tuple[int, int, int]) -> int:
        """Return a map of ``size`` with the pixels of a map, in their order, where they lie."""
        network_map = self.maps[map_number]
        (rows, columns, channels), view = network_map.size, network_map.view
        if network_map.size == size:
            return map_number
        step = (1, 0) if columns == 1 else (0, 1)  # from pixel to pixel, in rows and columns
        in_rows = rows > 1 and columns > 1
        scattered = in_rows and view is not None and view.line != tuple(
            columns * n for n in view.pixel
        )
        if size[2] != channels or size[0] * size[1] != rows * columns or scattered:
            raise WrongMap(f"its input must be a map of {size}, not of {network_map.size}")
        if in_rows and view is None:
            self.maps[map_number] = dataclasses.replace(network_map, linear=True)
        return self.view(map_number, size, line=tuple(size[1] * n for n in step), pixel=step)

    def view(self, whole: int, size: tuple[int, int, int], **place) -> int:
        """Return a map that lies in another one; ``place`` are fields of `MapView`."""
        if place.get("channel", 0) % self._depth:
            raise Refusal(
                f"its channels must begin at a multiple of {self._depth}, not at"
                f" {place['channel']}"
            )
        found = NetworkMap(-1, *size, view=MapView(whole, **place))
        if found in self.maps:
            return self.maps.index(found)
        return self._append(found, self.first_list[whole])

    def between(self, size: tuple[int, int, int], first_list: int) -> int:
        """Return a new map for values between the layers of an operator."""
        return self._append(NetworkMap(-1, *size), first_list)

    def again(self, whole: int, number: int, first_list: int) -> int:
        """Return a map with the place of another one, which list ``first_list`` writes again."""
        network_map = self.maps[whole]
        return self._append(NetworkMap(number, *network_map.size, view=MapView(whole)), first_list)

    def root_map(self, number: int) -> int:
        """Return the map in whose place a map lies, or its own number."""
        view = self.maps[number].view
        return number if view is None else self.root_map(view.whole)

    def put(self, number: int, map_number: int) -> None:
        """A map has the values of a tensor."""
        self._alias.pop(number, None)
        self._place[number] = map_number
        self.maps[map_number] = dataclasses.replace(self.maps[map_number], tensor=number)

    def segments(self, layers, host, renamed, wanted) -> tuple[GraphSegment, ...]:
        """Return the lists.

        Parameters
        ----------
        layers : list of NetworkLayer
            In the order of their lists.
        host : list of (int, Step)
            Operators of the host, with the list that they are computed before.
        renamed : list of (Host, int)
            Operators without work, and a tensor of each.
        wanted : list of int
            Tensors that the host reads.
        """
        lists = [self.first_list[layer.y] for layer in layers]
        results = {n: self.map_of(n) for n in wanted if self.map_of(n) is not None}
        places = [(node, n, self.map_of(n)) for node, n in renamed]
        return tuple(
            GraphSegment(
                before=tuple(step for first, step in host if first == number),
                layers=range(lists.index(number), lists.index(number) + lists.count(number)),
                results={n: m for n, m in results.items() if self.first_list[m] == number},
                renamed=tuple(
                    entry for entry in places
                    if number == (0 if entry[2] is None else self.first_list[entry[2]])
                ),
            )
            for number in range(lists[-1] + 1 if lists else 0)
        )

    def kept(self) -> tuple:
        """Return all that an operator changes, for `restore`."""
        return tuple(copy.copy(getattr(self, name)) for name in _STATE)

    def restore(self, state: tuple) -> None:
        """Forget all since `kept`."""
        for name, value in zip(_STATE, state, strict=True):
            setattr(self, name, copy.copy(value))

    def computed(self, number: int, size: tuple[int, int, int], first_list: int) -> int:
        """Return a new map for a tensor that list ``first_list`` computes."""
        self._place[number] = self._append(NetworkMap(number, *size), first_list)
        return self._place[number]

    def replace(self, map_number: int, number: int, first_list: int) -> None:
        """A map has another tensor, and another list computes it."""
        self._place[number] = map_number
        self.maps[map_number] = dataclasses.replace(self.maps[map_number], tensor=number)
        self.first_list[map_number] = first_list

    def put_into(self, number: int, view: MapView) -> bool:
        """Let the layers that compute a map write it into another one, if they can."""
        network_map = self.maps[number]
        if network_map.view is not None or network_map.form is not None or view.whole == number:
            return False
        if number in self.variables.values():
            return False  # it has values before any layer
        lines = view.line == tuple(network_map.width * n for n in view.pixel)
        in_rows = network_map.height > 1 and network_map.width > 1
        if network_map.linear and in_rows and not lines:
            return False  # a view of the map counts its pixels through all rows
        self.maps[number] = dataclasses.replace(network_map, view=view)
        return True

    def _append(self, network_map, first_list):
        self.maps.append(network_map)
        self.first_list.append(first_list)
        return len(self.maps) - 1


def written_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels of the map as which the host writes a tensor."""
    if len(shape) == 4 and shape[0] == 1:
        return shape[1:]
    return (1, math.prod(shape[:-1]), shape[-1]) if shape else (1, 1, 1)
