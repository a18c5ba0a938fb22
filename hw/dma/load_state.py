"""The registers of the address generator: fields of the load, its panel and its slice."""

from amaranth.hdl import Signal
from amaranth.lib import data
from amaranth.utils import ceil_log2

from weft.descriptors import ElementOrder
from weft.hw.dma.layout import HALF_ROWS

__all__ = ["LoadFields", "PackTask", "PanelState", "SliceState"]

ADDRESS_BITS = 32


class PackTask(data.StructLayout):
    """The packing of the bytes of one read request, or of zeros without a request.

    ============ =========================================================================
    packed       the order of the load is PACKED
    operand_b    1: operand B, 0: operand A; not for PACKED
    k_minor      the order of the load is K_MINOR
    has_data     a read request belongs to the task; otherwise it packs zeros only
    last         last task of its slice
    load_last    last task of its load
    last_row_end index of the last stream word in the slice's last row
    offset       first byte of the run within its beat
    last_byte    bytes of the run, less one
    last_word    pack words of the task, less one, zeros included
    ============ =========================================================================

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    layouts : as of `weft.hw.dma.layout.layouts`
    """

    def __init__(self, *, data_bytes, layouts):
        max_bytes = max(max(x.slice_k, x.edge) * x.size for x in layouts)
        max_words = max(
            *(HALF_ROWS * x.line_pack_words for x in layouts),
            *(x.k_pack_words for x in layouts[:2]),
        )
        super().__init__({
            "packed": 1, "operand_b": 1, "k_minor": 1, "has_data": 1, "last": 1, "load_last": 1,
            "last_row_end": range(max(x.row_words for x in layouts)),
            "offset": ceil_log2(data_bytes),
            "last_byte": range(max_bytes),
            "last_word": range(max_words),
        })


class LoadFields:
    """Registers with the fields of a load, and with the counters of its remaining parts.

    Attributes
    ----------
    region : Signal
        Operand number.
    order : Signal of `ElementOrder`
    packed, k_minor : Value
        The order is PACKED, K_MINOR.
    last_k : Signal
        K less one; of a PACKED load, the words of a panel less one.
    lines : Signal
        Lines from this panel on.
    panels : Signal
        Panels from this one on.
    segments : Signal
        Of a PACKED load: segments of the panel from this one on. Each counts as a panel.
    last_panel : Value
        The panel, or segment, is the last one of the load.
    """

    def __init__(self, *, geometries, max_k):
        operands = geometries.values()
        self.region = Signal(range(max(geometries) + 1))
        self.order = Signal(ElementOrder)
        self.packed = self.order == ElementOrder.PACKED
        self.k_minor = self.order == ElementOrder.K_MINOR
        self.last_k = Signal(range(max_k), reset_less=True)
        self.lines = Signal(16, reset_less=True)
        self.panels = Signal(range(max(g.pages for g in operands) + 1), reset_less=True)
        self.segments = Signal(range(max(g.segments for g in operands) + 1))
        self.last_panel = (self.panels == 1) & ~self.segments[1:].any()


class PanelState:
    """Registers of the panel that is being fetched, and of its slice.

    Attributes
    ----------
    lines : Signal
        Lines of the panel that the operand has; the others are zeros.
    slice_index : Signal
        Slices of the panel before this one.
    last_k : Signal
        K from this slice on, less one.
    more : Signal
        The slice is not the last one of the panel.
    """

    def __init__(self, *, layouts, max_k):
        self.lines = Signal(range(max(x.edge for x in layouts) + 1))
        self.slice_index = Signal(range(-(-max_k // min(x.slice_k for x in layouts[:2])) + 1))
        self.last_k = Signal(range(max_k), reset_less=True)
        self.more = Signal()


class SliceState:
    """Registers of the tasks of a slice.

    Attributes
    ----------
    task : Signal of `PackTask`
        The fields that all tasks of the slice share.
    count : Signal
        Tasks from this one on, less one.
    padding : Signal
        Tasks at the end of the slice that have no data.
    has_data : Signal
        This task has data.
    by_stride : Signal
        The next run is a stride away; otherwise it follows this one.
    """

    def __init__(self, *, task, layouts, max_tasks):
        self.task = Signal(task, reset_less=True)
        self.count = Signal(range(max_tasks))
        self.padding = Signal(range(
            1 + max(max(x.edge for x in layouts), max(x.row_k - 1 for x in layouts))
        ))
        self.has_data = Signal()
        self.by_stride = Signal(init=1)
