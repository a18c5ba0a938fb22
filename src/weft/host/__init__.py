"""The driver of an accelerator, and the transports it speaks over."""

__all__ = ["Accelerator", "GoldenTransport"]


def __getattr__(name):
    # On first use, so that the link codec alone asks for nothing but the standard library.
    if name == "Accelerator":
        from weft.host.accelerator import Accelerator

        return Accelerator
    if name == "GoldenTransport":
        from weft.host.golden import GoldenTransport

        return GoldenTransport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
