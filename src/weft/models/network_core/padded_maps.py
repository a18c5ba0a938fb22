"""PAD before convolutions, which read the map before it."""

import dataclasses

from weft.models.ir import Gemm, Graph, Host

__all__ = ["PaddedMaps"]


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
