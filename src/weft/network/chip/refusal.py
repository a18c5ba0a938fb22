"""Why an operator cannot run on a core for networks."""

from weft.network.errors import ModelError
from weft.network.ir import Node

__all__ = ["Refusal", "refused"]

_ELSEWHERE = (
    "compile the network for a core for matrix products (a target without [chip]), which gets"
    " each layer over the link"
)


class Refusal(Exception):
    """An operator that the core cannot run; the text is the reason."""


def refused(graph: str, node: Node, reason: str) -> ModelError:
    """Return the error for a node of a graph, with the reason and the alternative."""
    return ModelError(
        f"{graph}: operator {node.position[0]} ({node.operator} {node.name}) does not run on a"
        f" core for networks: {reason}; {_ELSEWHERE}"
    )
