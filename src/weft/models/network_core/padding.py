"""PAD in the windows of the convolutions that read its output."""

import dataclasses

from weft.models.ir import Gemm, Graph, Host
from weft.models.network_core.refusal import Refusal

__all__ = ["PaddedMaps"]


class PaddedMaps:
    """The outputs of PAD that no memory holds: convolutions read the map before PAD.

    A tap outside the map reads the zero point, so PAD must have this value.
    """

    def __init__(self):
        self._nodes: dict[int, Host] = {}

    def add(self, node: Host, graph: Graph) -> None:
        """Take a PAD; Refusal if a reader of its output is no convolution, or its value differs."""
        y, padding = node.outputs[0], node.attributes["padding"]
        readers = [other for other in graph.nodes if y in other.inputs]
        if len(node.inputs) != 1 or len(padding) != 4 or any((*padding[0], *padding[3])):
            raise Refusal("it must add rows and columns of one value")
        for other in readers:
            if not isinstance(other, Gemm) or other.window is None or other.layout != "NHWC":
                raise Refusal("only convolutions may read its output")
            if other.x_zero != node.attributes["value"]:
                raise Refusal(
                    f"its value must be the zero point {other.x_zero}, not"
                    f" {node.attributes['value']}"
                )
        if y in graph.results or not readers:
            raise Refusal("the host reads its output")
        self._nodes[y] = node

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
