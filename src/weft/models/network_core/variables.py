"""Variables that stay in the memory of a network core from inference to inference.

A variable has a map of its own, which nothing else overwrites. Its value before the inference is in
this map, for all lists. Behind all other layers, a layer copies the new value there. Without it,
the layers that compute the new value write it there, if all readers of the old one come before.

A ring needs no such layer: a map of the last frames, whose newest ones are the next value of the
variable. The map of the variable is this part of the ring. So a step begins with a layer that
copies the older frames to the front of the ring, and then others write the new frames behind them.
"""

import dataclasses

from weft.models.ir import Host, State
from weft.models.network_core.layers import NetworkLayer, NotKept, Refusal
from weft.models.network_core.map_pitches import MapView
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.tensor_places import TensorPlaces

__all__ = ["assigned", "check_wanted"]

_BYTES = 1  # of a value


def assigned(
    division, layers: list[NetworkLayer], variables: tuple[State, ...]
) -> list[NetworkLayer]:
    """Return the layers that give the variables their new values, after all other ``layers``.

    ``division`` is the state of `weft.models.network_core.division.divide`. Raises NotKept for a
    variable whose value is not of 8 bits, or is new on the host.
    """
    for state in variables:
        if state.initial.dtype.itemsize != _BYTES or not layers:
            raise NotKept(state)
    sources, added, rings = [], [], set()
    for state in variables:
        try:
            sources.append(_source(division, state))
        except Refusal as refusal:
            raise NotKept(state) from refusal
        added += sources[-1][1].layers
    for state, (source, builder) in zip(variables, sources, strict=True):
        kept = division.places.variables[state.before]
        if source == kept:
            continue  # no operator writes it
        if _is_in_ring(division.places, kept, source, layers, added, rings):
            rings.add(division.places.root_map(source))
        elif source in rings or not (
            _is_written_there(division.places, kept, source, [*layers, *added])
        ):
            added += _copied(division, state, source, [*layers, *added])
        elif builder.layers:
            copy, = builder.layers
            added[added.index(copy)], = builder.finished((source,))
    return added


def _source(division, state):
    """Return the map with the new value of a variable, and the builder of a layer that copies it.

    A value that lies in a variable is copied: the variable may get its own new value before.
    """
    places, builder = division.places, _builder(division, state)
    kept = places.variables[state.before]
    source = places.map_of(state.after)
    if source is None:
        raise Refusal("the host has the new value")
    source = builder.reshaped(source, builder.size(kept))
    if source != kept and places.root_map(source) in places.variables.values():
        source = builder.copy(source)
    return source, builder


def _copied(division, state, source, layers):
    """Return the layer that copies the new value of a variable, in the last list."""
    places, builder = division.places, _builder(division, state)
    last = max(places.first_list[layer.y] for layer in layers)
    y = places.again(places.variables[state.before], state.before, last)
    try:
        builder.copy(source, y=y)
    except Refusal as refusal:
        raise NotKept(state) from refusal
    return builder.finished((y,))


def _is_in_ring(places, kept, source, layers, added, rings):
    """Let a variable lie in a ring where its new value is, if one layer alone reads the old one.

    The layer copies it to pixels before, in the same map. So it must be the first one of those that
    write this map, and is moved there.
    """
    new, whole = places.maps[source], None
    if new.view is not None and new.size == places.maps[kept].size:
        whole = places.maps[new.view.whole]
    if whole is None or whole.view is not None or whole.form is not None:
        return False
    ring = new.view.whole
    if ring in rings:
        return False  # it has a variable already
    every = [*layers, *added]
    readers = [layer for layer in every if kept in map(places.root_map, layer.reads)]
    copy = readers[0] if len(readers) == 1 else None
    if copy not in layers or copy.x != kept or not copy.is_copy or not _goes_back(
        places.maps[copy.y].view, new.view
    ):
        return False
    writers = [layer for layer in every if places.root_map(layer.y) == ring]
    if any(places.first_list[layer.y] != places.first_list[copy.y] for layer in writers):
        return False
    if writers[0] is not copy:
        if not copy.operators:
            return False  # it belongs to the layers behind it
        place = layers.index(writers[0])
        while place and not layers[place - 1].operators:
            place -= 1
        layers.remove(copy)
        layers.insert(place, copy)
    places.maps[kept] = dataclasses.replace(places.maps[kept], view=new.view)
    return True


def _goes_back(old, new):
    """Whether each pixel of a view lies in the same map as in another one, but before it."""
    if old is None:
        return False
    first = dataclasses.replace(old, row=new.row, column=new.column)
    return first == new == MapView(new.whole, row=new.row, column=new.column) and (
        (old.row, old.column) < (new.row, new.column)
    )


def _is_written_there(places, kept, source, layers):
    """Let the layers that compute a map write it into that of a variable, if they can."""
    if places.maps[source].size != places.maps[kept].size:
        return False
    ordered = sorted(layers, key=lambda layer: places.first_list[layer.y])
    writes = [n for n, layer in enumerate(ordered) if places.root_map(layer.y) == source]
    reads = [-1]
    for number, layer in enumerate(ordered):
        if places.root_map(layer.x) == kept:
            reads.append(number)
        elif layer.added >= 0 and places.root_map(layer.added) == kept:
            # A job reads each added value before it stores the result in its place.
            whole = layer.added == kept and layer.y == source
            reads.append(number - whole)
    early = bool(writes) and max(reads) < min(writes)
    return early and places.put_into(source, MapView(kept))


def _builder(division, state):
    """Return a builder for the operators that write a variable."""
    operators = dict.fromkeys(division.operators[place] for place in state.position)
    return OperatorBuilder(division, Host(
        operator="+".join(operators), name=state.name, position=state.position,
        inputs=(state.after,), outputs=(state.before,), kernel="read_variable", attributes={},
        reason="",
    ))


def check_wanted(places: TensorPlaces, variables: tuple[State, ...], tensors: list[int]) -> None:
    """Raise NotKept if the host needs one of ``tensors`` that is the old value of a variable.

    It reads maps after a list, and then a variable has its new value.
    """
    states = {places.variables[state.before]: state for state in variables}
    new = {places.map_of(state.after) for state in variables}
    for number in tensors:
        place = places.map_of(number)
        while place is not None and place not in new:
            if place in states:
                raise NotKept(states[place])
            view = places.maps[place].view
            place = None if view is None else view.whole
