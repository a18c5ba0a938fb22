"""The driver of an accelerator, and its transports."""

__all__ = ["Accelerator", "GoldenTransport"]


def __getattr__(name):
    # Imported on first use: the link codec alone needs only the standard library.
    if name == "Accelerator":
        from weft.host.accelerator import Accelerator

        return Accelerator
    if name == "GoldenTransport":
        from weft.host.emulated import GoldenTransport

        return GoldenTransport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
