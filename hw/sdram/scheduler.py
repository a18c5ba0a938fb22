"""The commands of an SDR SDRAM: rows that stay open, accesses, refreshes, power-up."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from weft.hw.dma.axi import BURST

__all__ = ["Access", "Command", "Request", "Scheduler"]

LONGEST = 8  # words of the longest access that the mode register allows
SINGLE_WRITES = 1 << 9  # of the mode register: a WRITE has one word, whatever the length of a READ
ALL_BANKS = 1 << 10  # address bit 10 of a PRECHARGE


class Command(enum.Enum, shape=3):
    """RAS#, CAS#, WE#, from the highest bit down."""

    MODE = 0b000
    REFRESH = 0b001
    PRECHARGE = 0b010
    ACTIVATE = 0b011
    WRITE = 0b100
    READ = 0b101
    NOP = 0b111


class Access:
    """How beats divide into accesses: one READ or WRITE moves ``words`` words.

    Attributes
    ----------
    words : int
        Words of an access: at most 8, the burst length of the chip.
    per_beat : int
        Accesses of a beat.
    row_beats : int
        Beats of a row: a multiple of `BURST`, so no burst leaves its row.

    Raises
    ------
    ValueError
        If a beat has fewer than 2 words, or a row fewer than `BURST` beats.
    """

    def __init__(self, chip, *, data_bytes):
        low, high = 2 * chip.word_bytes, chip.row_bytes // BURST
        if not (low <= data_bytes <= high and data_bytes & (data_bytes - 1) == 0):
            raise ValueError(
                f"data_bytes must be a power of two in {low}..{high} for {chip.name}, not"
                f" {data_bytes}"
            )
        words = data_bytes // chip.word_bytes
        self.words = min(words, LONGEST)
        self.per_beat = words // self.words
        self.row_beats = chip.row_bytes // data_bytes


class Request(data.StructLayout):
    """Beats of one row to read, or one beat to write: ``len`` is their number less one."""

    def __init__(self, chip, *, data_bytes):
        access = Access(chip, data_bytes=data_bytes)
        super().__init__({
            "beat": range(access.row_beats), "bank": range(chip.banks), "row": range(chip.rows),
            "len": range(BURST), "write": 1,
        })


class _Ahead:
    """The request whose row opens."""

    def __init__(self, layout):
        self.request = Signal(layout, name="ahead")
        self.valid, self.checked, self.hit, self.bank_open = (
            Signal(name=f"ahead_{name}") for name in ("valid", "checked", "hit", "bank_open")
        )


class _Now:
    """The request that transfers, and the access that does: ``phase`` cycles of it are left."""

    def __init__(self, access, layout):
        self.words = access.words
        self.beat_bits = exact_log2(access.per_beat)
        self.shift = exact_log2(access.words * access.per_beat)
        step = ceil_log2(BURST) + self.beat_bits  # bits that count within a burst
        self.valid, self.start, self.write = (
            Signal(name=f"now_{name}") for name in ("valid", "start", "write")
        )
        self.bank = Signal(layout["bank"].shape, name="now_bank")
        self.access_bank = Signal.like(self.bank)
        self.column = Signal(exact_log2(access.row_beats) + self.shift, name="now_column")
        self.step = self.column[exact_log2(access.words) :][:step]
        self.left = Signal(step, name="now_left")
        self.phase = Signal(range(access.words), name="now_phase")
        self.turn = Signal(range(LONGEST + 4), name="now_turn")

    def turn_cycles(self, timing):
        """From a READ to a WRITE, less one: latency, words, and a cycle in which nobody drives."""
        return timing.cas + self.words


class _Banks:
    """The rows that are open, or will be, and the cycles until commands for rows may come.

    The row of a bank is stored when the bank is closed, so after a refresh the row that was open is
    still known.
    """

    def __init__(self, scheduler):
        chip, timing, words = scheduler.chip, scheduler.timing, scheduler.access.words
        self.rows = Memory(shape=ceil_log2(chip.rows), depth=chip.banks, init=[])
        self.read, self.write = self.rows.read_port(domain="comb"), self.rows.write_port()
        self.opened = Signal(chip.banks)
        # After an ACTIVATE or a WRITE, until any PRECHARGE; the longest one, so one counter does.
        self.longest_hold = max(words - 2 + timing.wr, timing.ras - 1, timing.rc - timing.rp - 1)
        self.hold = Signal(range(self.longest_hold + 1))
        # After other commands for rows, until any of them.
        self.wait = Signal(range(max(timing.rp, timing.rcd, timing.rfc, timing.mrd)))


class _Refresh:
    """The refreshes that are due."""

    def __init__(self, ready, most):
        self.ready = ready
        self.due = Signal(range(most + 1))
        self.want, self.made = (Signal(name=f"refresh_{name}") for name in ("want", "made"))


class Scheduler(wiring.Component):
    """Turns requests into commands, in their order.

    Two requests are inside: one transfers while the next one opens its row. Rows stay open until
    their bank needs another one, or a refresh. A READ or WRITE comes every ``words`` cycles while
    requests follow. A refresh waits until ``timing.postponed`` of them are due, or no request is
    inside; then all of them are made, between two accesses. So requests cannot delay it for longer
    than an access.

    If DQM of the chip is not wired, each word of a write has a WRITE of its own.

    After a reset the chip is set up: PRECHARGE, refreshes, LOAD MODE REGISTER. Requests wait. It is
    set up once more after its clock has moved: until then it may have taken other commands than
    those of the pins.

    Parameters
    ----------
    chip : `weft.sdram.SdramChip`
    timing : `weft.sdram.SdramTiming`
    data_bytes : int
        Bytes of a beat.

    Attributes
    ----------
    request : In, `Request`; valid with ``offered``
    offered : In, 1 bit
        It may change as long as it is not taken.
    taken : Out, 1 bit
        The request is taken in this cycle.
    reading : Out, 1 bit
        A read is inside, and not all of its accesses have started.
    room : In, 1 bit
        The words of one more access can be received.
    again : In, 1 bit
        Pulse, while no request is inside: set the chip up once more.
    read_start : Out, 1 bit
        Pulse: an access of a read starts.
    command, ba, a : Out
        For the pins, one cycle later.
    read_word, write_word : Out, 1 bit each
        A word is read or written. Of the first word with the command of its access, of the others
        in the cycles after it.
    last : Out, 1 bit, valid with ``read_word``
        The access is the last one of its request.
    ready : Out, 1 bit
        The chip is set up.
    """

    def __init__(self, chip, timing, *, data_bytes):
        self.chip = chip
        self.timing = timing
        self.access = Access(chip, data_bytes=data_bytes)
        self.layout = Request(chip, data_bytes=data_bytes)
        super().__init__({
            "request": In(self.layout), "offered": In(1), "taken": Out(1), "reading": Out(1),
            "room": In(1), "again": In(1), "read_start": Out(1),
            "command": Out(Command, init=Command.NOP), "ba": Out(range(chip.banks)),
            "a": Out(max(11, ceil_log2(chip.rows))),
            "read_word": Out(1), "write_word": Out(1), "last": Out(1), "ready": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        timing = self.timing
        ahead, now, banks = _Ahead(self.layout), _Now(self.access, self.layout), _Banks(self)
        m.submodules.rows = banks.rows
        refresh = self._refreshes(m, ahead.valid | now.valid | (now.phase != 0))
        m.d.comb += [
            self.taken.eq(self.offered & ~ahead.valid),
            self.reading.eq(ahead.valid & ~ahead.request.write | now.valid & ~now.write),
        ]
        m.d.sync += [
            banks.wait.eq(banks.wait - (banks.wait != 0)),
            banks.hold.eq(banks.hold - (banks.hold != 0)),
            self.command.eq(Command.NOP), self.ba.eq(now.bank), self.a.eq(now.column),
        ]
        with m.If(self.taken):
            m.d.sync += [
                ahead.request.eq(self.request), ahead.valid.eq(1), ahead.checked.eq(0),
            ]
        self._transfer(m, now)
        # A word of a write follows the one of this cycle.
        more = self.write_word & (now.phase != 0)
        with m.FSM():
            with m.State("POWER_UP"):
                with m.If(refresh.due == timing.power_up):
                    m.next = "CLOSE"
            with m.State("RUN"):
                m.d.comb += now.start.eq(
                    now.valid & (now.phase == 0)
                    & Mux(now.write, now.turn == 0, self.room)
                )
                with m.If(now.start):
                    m.d.sync += self.command.eq(Mux(now.write, Command.WRITE, Command.READ))
                    with m.If(now.write):
                        m.d.sync += banks.hold.eq(banks.longest_hold)
                with m.Else() if self.chip.masks else m.Elif(~more):
                    self._open_row(m, ahead, now, banks)
                self._look_up(m, ahead, now, banks)
                with m.If(refresh.want):
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                with m.If((now.phase == 0) & (banks.hold == 0) & (banks.wait == 0)):
                    m.d.sync += [
                        self.command.eq(Command.PRECHARGE), self.a.eq(ALL_BANKS),
                        banks.opened.eq(0), banks.wait.eq(timing.rp - 1), ahead.checked.eq(0),
                    ]
                    m.next = "REFRESH"
            with m.State("REFRESH"):
                m.d.comb += banks.read.addr.eq(now.bank)
                with m.If(banks.wait == 0):
                    with m.If(self._refresh(m, refresh, banks)):
                        with m.If(now.valid):  # its row was open
                            self._activate(m, banks, now.bank)
                        m.next = "REOPEN"
            with m.State("REOPEN"):
                with m.If(banks.wait == 0):
                    m.next = "RUN"
        if not self.chip.masks:
            self._write_next(m, more)
        with m.If(self.again):
            m.d.sync += self.ready.eq(0)
        return m

    def _write_next(self, m, more):
        """Write the word that follows the one of this cycle, whose column is in ``a``."""
        low = exact_log2(self.access.words)
        with m.If(more):
            m.d.sync += [
                self.command.eq(Command.WRITE), self.ba.eq(self.ba),
                self.a.eq(Cat((self.a[:low] + 1)[:low], self.a[low:])),
            ]

    def _refreshes(self, m, inside):
        """Count the refreshes that are due; they are wanted if they are many, or nothing else is.

        They are wanted, too, to set the chip up.

        ``inside`` tells whether a request or an access is inside.
        """
        interval, postponed = self.timing.refresh, self.timing.postponed
        refresh = _Refresh(self.ready, max(self.timing.power_up, postponed) + 2)
        passed, tick = Signal(range(interval)), Signal()
        m.d.sync += [
            tick.eq(passed == interval - 2),
            passed.eq(Mux(tick, 0, passed + 1)),
            refresh.due.eq(refresh.due + tick - refresh.made),
            refresh.want.eq(
                (refresh.due >= postponed) | (refresh.due != 0) & ~inside | ~self.ready
            ),
        ]
        return refresh

    def _transfer(self, m, now):
        """Count the accesses of the request, and the words of an access."""
        words = self.access.words
        m.d.comb += self.read_start.eq(now.start & ~now.write)
        m.d.sync += [
            now.phase.eq(now.phase - (now.phase != 0)), now.turn.eq(now.turn - (now.turn != 0)),
        ]
        with m.If(now.phase == 0):
            m.d.sync += [self.read_word.eq(0), self.write_word.eq(0)]
        with m.If(now.start):
            m.d.sync += [
                now.phase.eq(words - 1), now.access_bank.eq(now.bank),
                now.step.eq(now.step + 1), now.left.eq(now.left - 1),
                now.valid.eq(now.left != 0), self.last.eq(now.left == 0),
                self.read_word.eq(~now.write), self.write_word.eq(now.write),
            ]
            with m.If(~now.write):  # then the pins are free for a cycle, before they turn
                m.d.sync += now.turn.eq(now.turn_cycles(self.timing))

    def _open_row(self, m, ahead, now, banks):
        """Open the row of the next request, if the command is free."""
        bank = ahead.request.bank
        # The bank of the request that transfers, and that of the access of the one before it.
        used = now.valid & (now.bank == bank) | (now.phase != 0) & (now.access_bank == bank)
        with m.If(ahead.valid & ahead.checked & ~ahead.hit & (banks.wait == 0)):
            with m.If(~ahead.bank_open):
                self._activate(m, banks, bank)
                m.d.sync += ahead.hit.eq(1)
            with m.Elif(~used & (banks.hold == 0)):
                m.d.comb += banks.write.en.eq(1)
                m.d.sync += [
                    self.command.eq(Command.PRECHARGE), self.ba.eq(bank), self.a.eq(0),
                    banks.wait.eq(self.timing.rp - 1), ahead.bank_open.eq(0),
                    banks.opened.bit_select(bank, 1).eq(0),
                ]

    def _look_up(self, m, ahead, now, banks):
        """Find whether the row of the next request is open; pass the request on when it is."""
        request, is_open = ahead.request, Signal()
        m.d.comb += [
            is_open.eq(banks.opened.bit_select(request.bank, 1)),
            banks.read.addr.eq(request.bank), banks.write.addr.eq(request.bank),
            banks.write.data.eq(request.row),
        ]
        with m.If(~ahead.checked):
            with m.If(ahead.valid & ~is_open):
                m.d.comb += banks.write.en.eq(1)
            m.d.sync += [
                ahead.checked.eq(ahead.valid), ahead.bank_open.eq(is_open),
                ahead.hit.eq(is_open & (banks.read.data == request.row)),
            ]
        with m.Elif(ahead.valid & ahead.hit & (banks.wait == 0) & ~now.valid):
            first = self.access.per_beat - 1
            m.d.sync += [
                ahead.valid.eq(0), now.valid.eq(1), now.bank.eq(request.bank),
                now.write.eq(request.write), now.column.eq(request.beat << now.shift),
                now.left.eq(Cat(C(first, now.beat_bits), request.len)),
            ]

    def _activate(self, m, banks, bank):
        """Open the row that is stored for the bank, whose number the memory of rows reads."""
        m.d.sync += [
            self.command.eq(Command.ACTIVATE), self.ba.eq(bank), self.a.eq(banks.read.data),
            banks.wait.eq(max(self.timing.rcd - 2, 0)), banks.hold.eq(banks.longest_hold),
            banks.opened.bit_select(bank, 1).eq(1),
        ]

    def _refresh(self, m, refresh, banks):
        """Refresh once, or set the mode after a reset; returns whether nothing is left to do."""
        timing, done = self.timing, Signal()
        with m.If(refresh.due != 0):
            m.d.sync += [self.command.eq(Command.REFRESH), banks.wait.eq(timing.rfc - 1)]
            m.d.comb += refresh.made.eq(1)
        with m.Elif(~refresh.ready):
            # Accesses of this length, in the order of their columns.
            mode = timing.cas << 4 | exact_log2(self.access.words)
            mode |= 0 if self.chip.masks else SINGLE_WRITES
            m.d.sync += [
                self.command.eq(Command.MODE), self.ba.eq(0), self.a.eq(mode),
                banks.wait.eq(timing.mrd - 1), refresh.ready.eq(1),
            ]
        with m.Else():
            m.d.comb += done.eq(1)
        return done
