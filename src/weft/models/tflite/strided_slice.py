"""STRIDED_SLICE: ranges and single indices of axes, new axes and an ellipsis.

Source: LiteRT, ``strided_slice.cc``. TFLite Micro has no new axes and no ellipsis.
"""

from weft.models.tflite.moving import sliced

__all__ = ["BUILDERS"]

NEW_AXIS, WHOLE_AXIS = "new axis", "whole axis"  # what an entry stands for, if not a range


def _strided_slice(graph, operator):
    graph.counts(operator, 4, 4)
    options = operator.options("StridedSliceOptions")
    x = graph.input(operator, 0)
    numbers = [graph.integers(operator, place) for place in (1, 2, 3)]
    if options.Offset():
        raise operator.error("option offset must be false, not true")
    count = len(numbers[0])
    if {len(part) for part in numbers} != {count}:
        lengths = ", ".join(str(len(part)) for part in numbers)
        raise operator.error(f"begin, end and strides must have equal lengths, not {lengths}")
    slices, shape = [], []
    for i in _entries(operator, options, count, len(x.shape)):
        if i is NEW_AXIS:
            shape.append(1)
            continue
        size, part, single = x.shape[len(slices)], slice(None, None, 1), False
        if i is not WHOLE_AXIS:
            part, single = _part(operator, options, i, [each[i] for each in numbers], size)
        if not single:
            shape.append(len(range(*part.indices(size))))
        slices.append(part)
    graph.expect(operator, shape)
    return sliced(
        graph, operator, [part.start for part in slices], [part.stop for part in slices],
        [part.step for part in slices],
    )


def _entries(operator, options, count, rank):
    """The numbers of the entries of a strided slice, or what the output has in their place.

    An ellipsis, or the end of the entries, stands for all axes that no other entry names. A bit of
    an ellipsis counts more than one of a new axis, and this one more than one of a single index.
    """
    masks = options.EllipsisMask(), options.NewAxisMask()
    ellipses = [i for i in range(count) if masks[0] >> i & 1]
    if len(ellipses) > 1:
        raise operator.error(f"ellipses must be at most 1, not {len(ellipses)}")
    new = [i for i in range(count) if masks[1] >> i & 1 and i not in ellipses]
    rest = rank - (count - len(new) - len(ellipses))
    if rest < 0:
        raise operator.error(f"entries must name at most {rank} axes, not {rank - rest}")
    if ellipses and rest == 0:  # LiteRT computes other values than numpy
        raise operator.error("an ellipsis must stand for at least 1 axis, not 0")
    entries = []
    for i in range(count):
        if i in ellipses:
            entries += [WHOLE_AXIS] * rest
        else:
            entries.append(NEW_AXIS if i in new else i)
    return entries if ellipses else entries + [WHOLE_AXIS] * rest


def _part(operator, options, i, numbers, size):
    """The slice of one axis of ``size``, and whether it is a single index without an axis."""
    begin, end, step = numbers
    if step == 0:
        raise operator.error(f"stride of axis {i} must not be 0")
    begin = None if options.BeginMask() >> i & 1 else begin
    if options.ShrinkAxisMask() >> i & 1:
        if step < 0:  # the runtimes disagree with each other
            raise operator.error(f"stride of the single index of axis {i} must be above 0: {step}")
        begin = begin or 0
        if not -size <= begin < size:
            raise operator.error(f"index of axis {i} must be in {-size}..{size - 1}: {begin}")
        return slice(begin % size, begin % size + 1, 1), True
    return slice(begin, None if options.EndMask() >> i & 1 else end, step), False


BUILDERS = {"STRIDED_SLICE": _strided_slice}
