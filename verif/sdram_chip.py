"""A model of an SDR SDRAM chip that refuses whatever its data sheet does not allow."""

from collections import deque

__all__ = ["ChipError", "SdramChipModel"]

# RAS#, CAS#, WE#: the truth table of the data sheets.
MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, BURST_STOP, NOP = range(8)
NAMES = (
    "LOAD MODE REGISTER", "REFRESH", "PRECHARGE", "ACTIVATE", "WRITE", "READ", "BURST STOP", "NOP",
)
A10 = 1 << 10
SINGLE_WRITES = 1 << 9  # of the mode register
FIRST_REFRESHES = 8  # before the mode register
MODE_CYCLES = 2
SLACK = 1e-6  # ns, of sums of periods


class ChipError(AssertionError):
    """The chip does not allow what its pins say."""


class _Bank:
    """The row that is open, if any, and times in ns and cycles."""

    def __init__(self):
        self.row = None
        self.activated = self.precharged = float("-inf")  # ns
        self.written = float("-inf")  # ns, of the last word
        self.read_end = -1  # first cycle in which a PRECHARGE cuts no word


class SdramChipModel:
    """A chip at a clock. `clock` takes the pins of one cycle.

    It keeps time in nanoseconds and takes its limits from the chip, not from numbers of cycles. It
    refuses: commands before the chip is set up; each time between two commands that is too short; a
    row that is open for too long; a row that is not refreshed in time; an access to a bank without
    an open row, or one that cuts another one; a word that is read and was never written; and two
    drivers of the data pins. A chip may do other things, such as auto precharge: the model refuses
    them, too.

    Parameters
    ----------
    chip : `weft.sdram.SdramChip`
    mhz : float
        Clock.
    contents : callable, optional
        ``contents(bank, row, column)`` is the value of a word that was not written. By default it
        is refused to read one.

    Attributes
    ----------
    words : dict
        ``(bank, row, column)`` -> value and mask of the bytes that were written.
    commands : dict
        Number of commands by name.
    """

    def __init__(self, chip, *, mhz, contents=None):
        self.chip = chip
        self.period = 1000 / mhz
        self.contents = contents
        self.words = {}
        self.commands = dict.fromkeys(NAMES, 0)
        self.cycle = 0
        self._banks = [_Bank() for _ in range(chip.banks)]
        self._refreshed = deque(maxlen=chip.refreshes)  # times, of the rows in their order
        self._free = 0.0  # ns; the next command may come
        self._activated = float("-inf")  # ns, in any bank
        self._closed = False  # all banks were precharged after power-up
        self._refreshes = 0  # since then, before the mode is set
        self._length = self._write_length = self._latency = None
        self._busy = 0  # cycle; the next READ or WRITE may come
        self._writes = {}  # cycle -> the word that is written in it
        self._reads = {}  # cycle -> the word that is at the pins in it
        self._masks = deque([0, 0], maxlen=2)  # of the two cycles before

    @staticmethod
    def outputs(pins):
        """The outputs of the `SdramPins` of a controller that `edge` takes, to sample them."""
        return (
            pins.cke, pins.cs_n, pins.ras_n, pins.cas_n, pins.we_n, pins.ba, pins.a, pins.dqm,
            pins.dq_o, pins.dq_oe,
        )

    def edge(self, cke, cs_n, ras, cas, we, ba, a, dqm, dq, driven):
        """The edge at the end of a cycle with these outputs; returns ``dq_i`` of the next cycle."""
        if not cke:
            self._refuse("CKE must be high")
        command = NOP if cs_n else ras << 2 | cas << 1 | we
        word = self.clock(command, ba=ba, a=a, dqm=dqm, dq=dq if driven else None)
        return 0 if word is None else word

    def clock(self, command, *, ba=0, a=0, dqm=0, dq=None):
        """The edge at the end of a cycle with these pins; returns the word of the next cycle.

        ``dq`` is the word that the controller drives, or None. So is the returned word of the chip.
        """
        now = self.cycle * self.period
        if not self.chip.masks:  # DQM is wired to ground
            dqm = 0
        self.commands[NAMES[command]] += 1
        self._set_up(command, now, dqm)
        if command != NOP and now < self._free - SLACK:
            late = self._free - now
            self._refuse(f"{NAMES[command]} must be {late:g} ns later (tRFC, tMRD)")
        if command in (READ, WRITE):
            self._access(command, now, self._bank(ba, command), ba, a)
        elif command == ACTIVATE:
            self._activate(now, self._bank(ba, command), a)
        elif command == PRECHARGE:
            for bank in self._banks if a & A10 else [self._bank(ba, command)]:
                self._precharge(now, bank)
            self._closed |= bool(a & A10)
        elif command == REFRESH:
            self._refresh(now)
        elif command == MODE:
            self._load_mode(now, ba, a)
        elif command == BURST_STOP:
            self._refuse("BURST STOP must not come")
        self._transfer(now, dqm, dq)
        self._age(now)
        self._masks.append(dqm)
        self.cycle += 1
        return self._word_read()

    def _refuse(self, text):
        raise ChipError(f"cycle {self.cycle}: {text}")

    def _wait(self, rule, name, now, since, least):
        if now - since < least - SLACK:
            self._refuse(f"{name} must be {least:g} ns after {rule}, not {now - since:g}")

    def _bank(self, ba, command):
        if ba >= len(self._banks):
            self._refuse(f"{NAMES[command]} of bank {ba} of {len(self._banks)}")
        return self._banks[ba]

    def _set_up(self, command, now, dqm):
        """The sequence after power-up."""
        if command == NOP:
            if self._refreshes == 0 and now < self.chip.power_up and self._length is None:
                every = (1 << self.chip.word_bytes) - 1
                if self.cycle > 0 and dqm != every and self.chip.masks:
                    self._refuse("DQM must be high during power-up")
            return
        name = NAMES[command]
        if now < self.chip.power_up - SLACK:
            self._refuse(f"{name} must be {self.chip.power_up:g} ns after power-up, not {now:g}")
        if not self._closed and command != PRECHARGE:
            self._refuse(f"{name} must follow a PRECHARGE of all banks")
        if command == MODE and self._refreshes < FIRST_REFRESHES:
            self._refuse(
                f"{name} must follow {FIRST_REFRESHES} refreshes, not {self._refreshes}"
            )
        if command in (ACTIVATE, READ, WRITE) and self._length is None:
            self._refuse(f"{name} must follow LOAD MODE REGISTER")

    def _activate(self, now, bank, row):
        if bank.row is not None:
            self._refuse(f"ACTIVATE of a bank whose row {bank.row} is open")
        if row >= self.chip.rows:
            self._refuse(f"ACTIVATE of row {row} of {self.chip.rows}")
        self._wait("PRECHARGE of the bank (tRP)", "ACTIVATE", now, bank.precharged, self.chip.rp)
        self._wait("ACTIVATE of the bank (tRC)", "ACTIVATE", now, bank.activated, self.chip.rc)
        self._wait("the last ACTIVATE (tRRD)", "ACTIVATE", now, self._activated, self.chip.rrd)
        bank.row, bank.activated = row, now
        self._activated = now

    def _precharge(self, now, bank):
        if bank.row is None:
            return
        self._wait("ACTIVATE of the bank (tRAS)", "PRECHARGE", now, bank.activated, self.chip.ras)
        self._wait("the last word (tWR)", "PRECHARGE", now, bank.written, self.chip.wr)
        if self.cycle < bank.read_end:
            self._refuse("PRECHARGE must not cut a READ")
        bank.row, bank.precharged = None, now

    def _refresh(self, now):
        for bank in self._banks:
            if bank.row is not None:
                self._refuse(f"REFRESH while row {bank.row} is open")
            self._wait("PRECHARGE (tRP)", "REFRESH", now, bank.precharged, self.chip.rp)
        self._refreshes += 1
        self._free = now + self.chip.rfc
        self._refreshed.append(now)

    def _load_mode(self, now, ba, a):
        if any(bank.row is not None for bank in self._banks):
            self._refuse("LOAD MODE REGISTER while a row is open")
        length, latency = 1 << (a & 7), a >> 4 & 7
        if ba or a >> 7 & ~(SINGLE_WRITES >> 7) or a & 8 or length > 8 or latency not in (2, 3):
            self._refuse(f"the mode 0x{a:x} of bank {ba} must be sequential bursts of 1 to 8 words")
        shortest = self.chip.period_2 if latency == 2 else self.chip.period_3
        if self.period < shortest - SLACK:
            self._refuse(
                f"a period with CAS latency {latency} must be at least {shortest:g} ns, not"
                f" {self.period:g}"
            )
        self._length, self._latency = length, latency
        self._write_length = 1 if a & SINGLE_WRITES else length
        self._free = now + MODE_CYCLES * self.period

    def _access(self, command, now, bank, ba, a):
        name = NAMES[command]
        if bank.row is None:
            self._refuse(f"{name} of bank {ba} without an open row")
        length = self._length if command == READ else self._write_length
        if a & A10 or a >= self.chip.columns or a % length:
            self._refuse(f"{name} of column 0x{a:x}, which is no multiple of {length}")
        self._wait("ACTIVATE of the bank (tRCD)", name, now, bank.activated, self.chip.rcd)
        if self.cycle < self._busy:
            self._refuse(f"{name} must not cut the access before it")
        self._busy = self.cycle + length
        for n in range(length):
            word = ba, bank.row, a + n
            if command == READ:
                self._reads[self.cycle + self._latency + n] = word
            else:
                self._writes[self.cycle + n] = word
        if command == READ:
            bank.read_end = self._busy
        else:
            bank.written = now + (length - 1) * self.period

    def _transfer(self, now, dqm, dq):
        """The data pins in this cycle."""
        if dq is not None and ({self.cycle, self.cycle - 1} & self._reads.keys()):
            self._refuse("two drivers of the data pins, or no cycle between them")
        self._reads.pop(self.cycle - 1, None)
        place = self._writes.pop(self.cycle, None)
        if place is None:
            return
        if dq is None:
            self._refuse("nothing drives a word that is written")
        value, known = self.words.get(place, (0, 0))
        mask = sum(0xFF << 8 * n for n in range(self.chip.word_bytes) if not dqm >> n & 1)
        self.words[place] = value & ~mask | dq & mask, known | mask

    def _word_read(self):
        """The word at the pins. DQM acts two cycles later."""
        place = self._reads.get(self.cycle)
        if place is None:
            return None
        if self._masks[0]:
            self._refuse("DQM masks a word that is read")
        every = (1 << self.chip.width) - 1
        value, known = self.words.get(place, (0, 0))
        if self.contents is not None:
            return self.contents(*place) & ~known & every | value & known
        if known != every:
            bank, row, column = place
            self._refuse(f"bank {bank}, row {row}, column {column} is read, and was not written")
        return value

    def _age(self, now):
        """What must not be put off for too long."""
        for bank in self._banks:
            if bank.row is not None and now - bank.activated > self.chip.ras_max:
                self._refuse(f"row {bank.row} must not be open for over {self.chip.ras_max:g} ns")
        if self._length is not None and len(self._refreshed) == self.chip.refreshes:
            if now - self._refreshed[0] > self.chip.retention:
                self._refuse(f"a row was not refreshed within {self.chip.retention:g} ns")
