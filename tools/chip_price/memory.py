"""The memory of the chip over the layers: addresses of maps, weights, parameters, descriptors."""

import random

from tools.chip_price.layers import ChipLayer

__all__ = ["allocate", "map_bytes"]


def map_bytes(layers: list[ChipLayer], align: int) -> int:
    """Return the bytes that the maps of all layers need together."""
    sizes, lives, places = {}, {}, {}
    for number, layer in enumerate(layers):
        sizes[layer.x] = max(sizes.get(layer.x, 0), layer.input_bytes)
        sizes[layer.y] = max(sizes.get(layer.y, 0), layer.m * layer.columns)
        for tensor in {layer.x, layer.residual} - {-1}:
            lives[tensor] = lives.get(tensor, (0, 0))[0], number
        lives[layer.y] = number, number
    # The sum of ADD overwrites the map that is added, if no later layer reads it.
    for number, layer in enumerate(layers):
        if layer.residual >= 0 and lives[layer.residual][1] == number:
            places[layer.y] = layer.residual
    return allocate(sizes, lives, places, align)


def allocate(sizes, lives, places, align) -> int:
    """Return the bytes of all maps; two maps share bytes only if their lives do not overlap.

    Each map has the lowest address that is free for all its life. Orders of the maps are tried
    until the bytes equal the most that live together, a thousand at most.

    Parameters
    ----------
    sizes : dict of int
        Bytes by tensor.
    lives : dict of (int, int)
        First and last layer that use the tensor.
    places : dict of int
        Tensors that have the address of another one.
    align : int
        Addresses are multiples of it.
    """
    owner = {tensor: _owner(tensor, places) for tensor in sizes}
    spans, size = {}, {}
    for tensor, own in owner.items():
        first, last = lives[tensor]
        before = spans.get(own, (first, last))
        spans[own] = min(first, before[0]), max(last, before[1])
        size[own] = max(size.get(own, 0), -(-sizes[tensor] // align) * align)
    least = max(
        sum(size[own] for own, (first, last) in spans.items() if first <= number <= last)
        for number in range(max(last for _, last in spans.values()) + 1)
    )
    order = sorted(spans, key=lambda tensor: (-size[tensor], spans[tensor]))
    best, shuffled = _top(order, size, spans), random.Random(1)
    for _ in range(1000):
        if best == least:
            break
        shuffled.shuffle(order)
        best = min(best, _top(order, size, spans))
    return best


def _top(order, size, spans):
    """The end of the highest map, if maps are placed in an order."""
    placed, top = [], 0
    for own in order:
        first, last = spans[own]
        address = 0
        for start, end, other_first, other_last in sorted(placed):
            together = first <= other_last and other_first <= last
            if together and start < address + size[own] and address < end:
                address = end
        placed.append((address, address + size[own], first, last))
        top = max(top, address + size[own])
    return top


def _owner(tensor, places):
    while tensor in places:
        tensor = places[tensor]
    return tensor
