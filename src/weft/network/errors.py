"""The error of networks: a file that cannot be read, or a network that cannot run."""

__all__ = ["ModelError"]


class ModelError(ValueError):
    """A network that cannot be imported, compiled or run.

    The message names the file, the node and the rule.
    """
