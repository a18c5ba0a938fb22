"""The address generator: turns a load into read requests, and a pack task for each."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import DescriptorWord
from weft.hw.dma.axi import BURST
from weft.hw.dma.load_state import LoadFields, PackTask, PanelState, SliceState
from weft.hw.dma.reader import ReadRequest
from weft.hw.dma.run_address import RunAddress

__all__ = ["AddressGenerator"]

ADDRESS_BITS = 32
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
