"""The ports of a language core, and the layout of its descriptors."""

from amaranth.hdl import signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.language_core.config import GROUP_BYTES
from weft.language_core.descriptors import CoreError, field_shapes

__all__ = ["LanguagePorts", "PassFields"]


class PassFields(data.StructLayout):
    """The fields of a `weft.language_core.descriptors.Pass`, at their places.

    Parameters
    ----------
    transfers : bool
        With those of a core that has a program memory.
    int4 : bool
        With that of a core that unpacks weights.
    """

    def __init__(self, *, transfers=False, int4=False):
        super().__init__({
            name: signed(bits) if is_signed else bits
            for name, (bits, is_signed) in field_shapes(transfers=transfers, int4=int4).items()
        })


class LanguagePorts(wiring.Signature):
    """The ports of a language core; `weft.hw.language_core.core.LanguageCore` describes them."""

    def __init__(self):
        super().__init__({
            "write": In(1), "table": In(1), "group": In(16),
            "write_data": In(8 * GROUP_BYTES), "read_data": Out(8 * GROUP_BYTES),
            "start": In(1), "list": In(12), "first_position": In(12), "limit": In(12),
            "stop_token": In(16), "seed": In(32), "run_abort": In(1),
            "busy": Out(1), "error": Out(CoreError), "position": Out(12), "cycles": Out(32),
            "prompt_valid": In(1), "prompt_ready": Out(1), "prompt_token": In(16),
            "prompt_last": In(1),
            "token_valid": Out(1), "token_ready": In(1), "token": Out(16),
        })
