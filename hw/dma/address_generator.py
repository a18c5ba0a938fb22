"""The address generator: turns a load into read requests, and a pack task for each."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import DescriptorWord, ElementOrder
from weft.hw.dma.axi import BURST
from weft.hw.dma.layout import HALF_ROWS
from weft.hw.dma.reader import ReadRequest

__all__ = ["AddressGenerator", "LoadFields", "PackTask", "PanelState", "RunAddress", "SliceState"]


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


class RunAddress(wiring.Component):
    """Address of a run of bytes. One adder computes the next one, and loads the first one.

    ============== ====================================================================
    ``step`` with  adds
    ============== ====================================================================
    ``by_stride``  the stride: to the next line, or with K_MINOR to the next k
    ``undo``       ``undo_bytes``
    neither        ``last_byte + 1``: to the byte after the run
    ``restore``    nothing: it goes back to the saved address
    ============== ====================================================================

    The first address enters as a stride: the word ADDRESS goes to the stride and clears the
    address; the next word, STRIDE, adds it and then replaces the stride.

    Attributes
    ----------
    word, index, take : In
        As of `AddressGenerator`.
    step : In
        1 bit; pulse: compute the next address.
    by_stride, undo, restore : In
        1 bit each; as in the table.
    last_byte : In
        Bytes of the run, less one.
    undo_bytes : In
        32 bits, two's complement.
    save : In
        1 bit; pulse: save the address.
    addr : Out
        32 bits.
    """

    def __init__(self, *, last_byte):
        super().__init__({
            "word": In(32), "index": In(4), "take": In(1),
            "step": In(1), "by_stride": In(1), "undo": In(1), "restore": In(1),
            "last_byte": In(last_byte), "undo_bytes": In(ADDRESS_BITS),
            "save": In(1),
            "addr": Out(ADDRESS_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        addr, saved, stride = (
            Signal(ADDRESS_BITS, name=n, reset_less=True) for n in ("r_addr", "saved", "stride")
        )
        m.d.comb += self.addr.eq(addr)
        load_addr = self.take & (self.index == DescriptorWord.STRIDE)
        term = Mux(self.by_stride, stride, Mux(self.undo, self.undo_bytes, self.last_byte))
        total = (Cat(1, addr) + Cat(~self.by_stride & ~self.undo, term))[1:]
        with m.If(self.take & (self.index == DescriptorWord.ADDRESS)):
            m.d.sync += [stride.eq(self.word), addr.eq(0)]
        with m.If(load_addr):
            m.d.sync += stride.eq(self.word)
        with m.If(load_addr | self.step):
            m.d.sync += addr.eq(Mux(self.restore, saved, total))
        with m.If(self.save):
            m.d.sync += saved.eq(addr)
        return m


BLOCK = ceil_log2(BURST)


class AddressGenerator(wiring.Component):
    """Emits the tasks and read requests of one load.

    ::

        for panel of the load:
            for slice of the panel:                # it fills one half of the packing memory
                for line of the panel:             # K_MAJOR
                    task: the slice's values of that line
                for k of the slice:                # K_MINOR
                    task: the values of that k, for the panel's lines
                task: the slice                    # PACKED; each segment counts as a panel

    Each task with data has a read request. Lines beyond the operand, and values of k beyond K in
    the last row of a slice, are tasks without data. A task with data takes two cycles, others
    one. For example, A of 3 lines and K = 5, in K_MAJOR order, on an array of 2 rows. A value is
    one byte, and ``address`` is the address of the first value::

        panel  line  request                  task
        0      0     address, 5 bytes         has_data
        0      1     + 1 stride, 5 bytes      has_data, last
        1      2     + 2 strides, 5 bytes     has_data
        1      -     none                     last, load_last

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    layouts : as of `weft.hw.dma.layout.layouts`

    Attributes
    ----------
    word, index, take : In
        A descriptor word, 32 bits, and its index; taken while ``take``, only while ``idle``, in
        the order of `weft.hw.dma.descriptor_fetcher.CHECK_WORDS`.
    start : In
        1 bit; pulse: start the load.
    idle : Out
        1 bit; no load is in progress.
    tasks : Out, stream of `PackTask`
    requests : Out, stream of `weft.hw.dma.reader.ReadRequest`
        The request of a task is valid in the cycle after the task was taken.
    """

    def __init__(self, *, data_bytes, geometries, layouts):
        self.data_bytes = data_bytes
        self.geometries = geometries
        self.layouts = layouts
        self.max_k = max(g.words for g in geometries.values()) * layouts[0].operand.depth
        self.task_shape = PackTask(data_bytes=data_bytes, layouts=layouts)
        last_byte = Shape.cast(self.task_shape["last_byte"].shape)
        self.max_beats = (1 << last_byte.width) // data_bytes + 1  # of a request
        self.max_tasks = max(max(x.edge, x.slice_k) for x in layouts)  # of a slice
        super().__init__({
            "word": In(32),
            "index": In(4),
            "take": In(1),
            "start": In(1),
            "idle": Out(1),
            "tasks": Out(stream.Signature(self.task_shape)),
            "requests": Out(stream.Signature(ReadRequest(max_beats=self.max_beats))),
        })

    def elaborate(self, platform):
        m = Module()
        load = LoadFields(geometries=self.geometries, max_k=self.max_k)
        panel = PanelState(layouts=self.layouts, max_k=self.max_k)
        current = SliceState(task=self.task_shape, layouts=self.layouts, max_tasks=self.max_tasks)
        m.submodules.address = address = RunAddress(
            last_byte=self.task_shape["last_byte"].shape
        )
        slice_start = Signal()
        m.d.comb += [
            address.word.eq(self.word), address.index.eq(self.index), address.take.eq(self.take),
            address.by_stride.eq(current.by_stride), address.last_byte.eq(current.task.last_byte),
            # K_MINOR: the address of the panel's first slice, from which the next panel follows.
            address.save.eq(slice_start & ~(load.k_minor & (panel.slice_index != 0))),
        ]
        for x in self._by_layout(m, load, slice(2)):
            m.d.comb += address.undo_bytes.eq(-x.slice_k * x.size)
        self._take_fields(m, load)
        self._start_slice(m, load, panel, current, slice_start)
        self._emit(m, current, address)
        restore, undo = Signal(), Signal()  # high in the states BACK, UNDO
        m.d.comb += [address.restore.eq(restore), address.undo.eq(undo)]
        with m.FSM():
            self._task_states(m, load, panel, current, address, slice_start)
            self._next_states(m, load, panel, address, restore, undo)
        return m

    def _by_layout(self, m, load, which=slice(None)):
        """Yield each layout within the case of its operand."""
        cases = zip(self.layouts, ("00", "10", "-1"), strict=True)
        with m.Switch(Cat(load.packed, load.region[0])):
            for layout, case in [*cases][which]:
                with m.Case(case):
                    yield layout

    def _take_fields(self, m, load):
        """Take the fields of the load from its descriptor words."""
        with m.If(self.take):
            with m.Switch(self.index):
                for index, field in (
                    (0, load.region.eq(self.word[16:])), (2, load.panels.eq(self.word)),
                    (DescriptorWord.ORDER, load.order.eq(self.word)),
                    (DescriptorWord.LINES, load.lines.eq(self.word)),
                ):
                    with m.Case(index):
                        m.d.sync += field
            with m.If((self.index == 3) | ((self.index == DescriptorWord.K) & ~load.packed)):
                m.d.sync += load.last_k.eq(self.word - 1)

    def _start_slice(self, m, load, panel, current, start):
        """Set the fields that are equal in all tasks of a slice, and the number of tasks."""
        task = current.task
        with m.If(start):
            m.d.sync += [
                task.packed.eq(load.packed), task.operand_b.eq(load.region[0]),
                task.k_minor.eq(load.k_minor),
                current.has_data.eq(load.packed | panel.lines.any()),
                current.by_stride.eq(~load.packed),
            ]
            for x in self._by_layout(m, load):
                more, last_k = panel.last_k >= x.slice_k, Signal(ceil_log2(x.slice_k), name="k")
                last_byte = Cat(Const(x.size - 1, ceil_log2(x.size)), last_k)
                m.d.comb += last_k.eq(panel.last_k | more.replicate(len(last_k)))
                m.d.sync += [
                    panel.more.eq(more), task.load_last.eq(load.last_panel & ~more),
                    task.last_byte.eq(last_byte), task.last_row_end.eq(_last_row_end(x, last_k)),
                    task.last_word.eq(
                        last_byte >> ceil_log2(x.pack_bytes) | (x.line_pack_words - 1)
                    ),
                    current.count.eq(x.edge - 1), current.padding.eq(x.edge - panel.lines),
                ]
                if x is self.layouts[-1]:
                    m.d.sync += current.padding.eq(0)
                    continue
                with m.If(load.k_minor):
                    m.d.sync += [
                        task.last_byte.eq(panel.lines * x.size - 1),
                        task.last_word.eq(x.k_pack_words - 1),
                        current.count.eq(last_k | (x.row_k - 1)),
                        current.padding.eq(~last_k[: ceil_log2(x.row_k)]),
                    ]

    def _emit(self, m, current, address):
        """Put the task on ``tasks``; once it is taken, its read request on ``requests``."""
        task, request, low = self.tasks.payload, self.requests, ceil_log2(self.data_bytes)
        m.d.comb += [
            task.eq(current.task), task.has_data.eq(current.has_data), task.offset.eq(address.addr),
            task.last.eq(current.count == 0),
            task.load_last.eq(current.task.load_last & (current.count == 0)),
        ]
        with m.If(request.ready):
            m.d.sync += request.valid.eq(0)
        with m.If(self.tasks.valid & self.tasks.ready):
            m.d.sync += current.count.eq(current.count - 1)
            with m.If(current.count == current.padding):
                m.d.sync += current.has_data.eq(0)
            with m.If(current.has_data):
                m.d.sync += [
                    request.valid.eq(1), request.payload.addr.eq(address.addr),
                    request.payload.last_beat.eq(
                        (address.addr[:low + BLOCK] + current.task.last_byte) >> low
                    ),
                ]

    def _task_states(self, m, load, panel, current, address, slice_start):
        """The states that start a load, a panel and a slice, and emit the tasks of the slice."""
        with m.State("IDLE"):
            m.d.comb += self.idle.eq(1)
            m.d.sync += [load.segments.eq(0), current.by_stride.eq(1)]
            with m.If(self.start):
                m.next = "PANEL"
        with m.State("PANEL"):
            m.d.sync += [panel.last_k.eq(load.last_k), panel.slice_index.eq(0)]
            for x in self._by_layout(m, load):
                m.d.sync += panel.lines.eq(Mux(load.lines < x.edge, load.lines, x.edge))
            with m.If(load.segments == 0):
                m.d.sync += load.segments.eq(1)
            with m.If(load.packed):
                with m.Switch(load.region):
                    for region, g in self.geometries.items():
                        with m.Case(region):
                            m.d.sync += panel.last_k.eq(load.last_k >> ceil_log2(g.group))
                            with m.If(load.segments == 0):
                                m.d.sync += load.segments.eq(g.segments)
            m.next = "SLICE"
        with m.State("SLICE"):
            m.d.comb += slice_start.eq(1)
            m.next = "TASKS"
        with m.State("TASKS"):
            m.d.comb += self.tasks.valid.eq(~self.requests.valid | ~current.has_data)
            with m.If(self.tasks.valid & self.tasks.ready):
                m.d.comb += address.step.eq(1)
                with m.If(current.count == 0):
                    m.d.sync += current.by_stride.eq(0)
                    m.next = "SLICE_DONE"

    def _next_states(self, m, load, panel, address, restore, undo):
        """The states that go from a finished slice to the next slice or panel.

        ======= ================= ==============================================================
        order   next              address
        ======= ================= ==============================================================
        K_MAJOR slice             saved address (first line), plus the bytes of the run
        K_MAJOR panel             one stride after the last line, minus the slices before
        K_MINOR slice             one stride after the last k
        K_MINOR panel             saved address (first k), plus the bytes of the run
        PACKED  slice, or panel   after the run
        ======= ================= ==============================================================
        """
        with m.State("SLICE_DONE"):
            m.next = "PANEL_DONE"
            with m.If(panel.more):
                for x in self._by_layout(m, load):
                    m.d.sync += panel.last_k.eq(panel.last_k - x.slice_k)
                m.d.sync += panel.slice_index.eq(panel.slice_index + 1)
                m.next = "SLICE"
            with m.If(~load.packed & (panel.more != load.k_minor)):
                m.d.sync += restore.eq(1)
                m.next = "BACK"
        with m.State("BACK"):
            m.d.comb += address.step.eq(1)
            m.d.sync += restore.eq(0)
            m.next = "FORWARD"
        with m.State("FORWARD"):
            m.d.comb += address.step.eq(1)
            m.next = "PANEL_DONE"
            with m.If(panel.more):
                m.next = "SLICE"
        with m.State("PANEL_DONE"):
            with m.If(~load.packed & ~load.k_minor & (panel.slice_index != 0)):
                m.d.sync += [panel.slice_index.eq(panel.slice_index - 1), undo.eq(1)]
                m.next = "UNDO"
            with m.Else():
                for x in self._by_layout(m, load, slice(2)):
                    m.d.sync += load.lines.eq(Mux(load.lines < x.edge, 0, load.lines - x.edge))
                m.d.sync += load.segments.eq(load.segments - 1)
                with m.If(~load.segments[1:].any()):
                    m.d.sync += load.panels.eq(load.panels - 1)
                m.next = "PANEL"
                with m.If(load.last_panel):
                    m.next = "IDLE"
        with m.State("UNDO"):
            m.d.comb += address.step.eq(1)
            m.d.sync += undo.eq(0)
            m.next = "PANEL_DONE"


def _last_row_end(layout, last_k):
    """Index of the last stream word in the last row of a slice."""
    if layout.row_words == 1:
        return Const(0)
    o = layout.operand
    group = last_k[ceil_log2(o.depth * o.group) : ceil_log2(layout.row_k)]
    return group * o.segments + (o.segments - 1)
