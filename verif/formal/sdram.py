"""Rules of the pins of an SDRAM, and the proof bench of its controller, with shortened timing."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from verif.formal.bench import FormalBench
from verif.formal.rules import Rules
from weft import sdram
from weft.hw.dma.axi import Axi4
from weft.hw.sdram import phase
from weft.hw.sdram.controller import SdramController, SdramPins
from weft.hw.sdram.scheduler import Command
from weft.sdram import SdramChip, SdramPhase, SdramTiming

__all__ = ["SdramRules", "phase_bench", "sdram_bench"]

BANKS = 2
CLOSE = 16  # cycles between a refresh that must be made and its command, at most
# The chip of the proofs: two banks of two rows; 16 beats of 8 words are a row, and 64 beats of 2.
CHIP = SdramChip(
    name="short", banks=BANKS, rows=2, columns=128, width=8, period_2=1, period_3=1, rcd=1, rp=1,
    ras=1, rc=1, rrd=1, rfc=1, wr=1, refreshes=16,
)
with patch.object(sdram, "_FIRST_REFRESHES", 1), patch.object(sdram, "_CLOSE", CLOSE):
    # No rule follows from others: tRAS is longer than tRCD and an access, tRC than tRAS and tRP.
    TIMING = SdramTiming(
        cas=2, rcd=3, rp=2, ras=7, rc=11, rrd=4, rfc=3, wr=3, mrd=6, ras_max=88, refresh=22,
        postponed=2, power_up=1,
    )


class SdramRules(Rules):
    """The rules of a chip for what is at its pins, cycle by cycle.

    Parameters
    ----------
    timing : `weft.sdram.SdramTiming`
    words : int
        Words of an access.
    masks : bool
        As of `weft.sdram.SdramChip`: without them, a WRITE has one word.

    Source: JEDEC JESD21-C 3.11.5, SDRAM.
    """

    PINS = {
        "ras_n": 1, "cas_n": 1, "we_n": 1, "ba": 1, "a": 11, "dqm": 1, "dq_oe": 1,
    }
    RULES = {
        "power_up": "no command comes before the time of power-up",
        "set_up": "PRECHARGE of all banks, a refresh and the mode come before the first ACTIVATE",
        "closed": "ACTIVATE comes to a bank without an open row",
        "open": "READ and WRITE come to a bank with an open row",
        "rcd": "READ and WRITE come tRCD after ACTIVATE of their bank",
        "rp": "ACTIVATE and REFRESH come tRP after PRECHARGE",
        "ras": "PRECHARGE comes tRAS after ACTIVATE of its bank",
        "rc": "ACTIVATE comes tRC after the last ACTIVATE of its bank",
        "rrd": "ACTIVATE comes tRRD after ACTIVATE of another bank",
        "rfc": "a command comes tRFC after REFRESH",
        "mrd": "a command comes tMRD after LOAD MODE REGISTER",
        "wr": "PRECHARGE comes tWR after the last word that was written to its bank",
        "refresh_closed": "REFRESH and LOAD MODE REGISTER come while no row is open",
        "whole": "READ and WRITE come when all words of the access before have been transferred",
        "not_cut": "PRECHARGE cuts no READ of its bank",
        "one_driver": "the controller drives no data while the chip does, nor in the cycle after",
        "driven": "the controller drives data in the cycles of the words that are written, only;"
        " without DQM, also in those of the words that it leaves out",
        "mask": "the mask is low two cycles before a word that is read",
        "refreshed": "at most one more refresh than may be postponed is due",
        "ras_max": "a row is open for at most the intervals whose refreshes are due, and one: with"
        " the rule before, for less than tRAS max",
    }
    COVERS = {
        "read_write": "a WRITE follows a READ as soon as it may",
        "write_read": "a READ follows a WRITE as soon as it may",
        "ahead": "a row opens while words of another bank are read",
        "replaced": "a row is closed, and another one of its bank is read",
        "refreshed_again": "a refresh comes while a row was open before",
    }

    def __init__(self, timing, words, *, masks=True):
        self.timing = timing
        self.words = words
        self.masks = masks
        self.write_words = words if masks else 1
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pins = Cat(self.we_n, self.cas_n, self.ras_n)
        is_ = {command: pins == command.value for command in Command}
        every = is_[Command.PRECHARGE] & self.a[10]
        closes = [is_[Command.PRECHARGE] & (self.a[10] | (self.ba == n)) for n in range(BANKS)]
        self._set_up(m, is_, every)
        self._rows(m, is_, closes)
        self._words(m, is_)
        self._refreshes(m, is_, closes)
        return m

    @staticmethod
    def _since(m, event, most, name):
        """Cycles since the last cycle with ``event``, at most ``most``; ``most`` before any."""
        count = Signal(range(most + 1), init=most, name=f"since_{name}")
        m.d.sync += count.eq(Mux(event, 1, Mux(count == most, most, count + 1)))
        return count

    def _set_up(self, m, is_, every):
        timing, command = self.timing, ~is_[Command.NOP]
        time = timing.power_up * timing.refresh
        waited = Signal(range(time + 1))
        closed, refreshed, mode = (Signal(name=name) for name in ("closed", "refreshed", "mode"))
        m.d.sync += [
            waited.eq(Mux(waited == time, time, waited + 1)), closed.eq(closed | every),
            refreshed.eq(refreshed | is_[Command.REFRESH]), mode.eq(mode | is_[Command.MODE]),
        ]
        self.check(m, "power_up", ~command | (waited == time))
        self.check(m, "set_up", (
            (~is_[Command.REFRESH] | closed) & (~is_[Command.MODE] | refreshed)
            & (~is_[Command.ACTIVATE] | mode)
        ))
        for rule, event, least in (
            ("rfc", is_[Command.REFRESH], timing.rfc), ("mrd", is_[Command.MODE], timing.mrd),
        ):
            self.check(m, rule, ~command | (self._since(m, event, least, rule) == least))

    def _rows(self, m, is_, closes):
        """Rules of each bank."""
        timing, words, last = self.timing, self.words, self.write_words - 1
        activate, access = is_[Command.ACTIVATE], is_[Command.READ] | is_[Command.WRITE]
        broken = {rule: [] for rule in (
            "closed", "open", "rcd", "rp", "ras", "rc", "rrd", "wr", "not_cut", "refresh_closed",
        )}
        opened = Signal(BANKS)
        quiet = is_[Command.REFRESH] | is_[Command.MODE]
        for n, close in enumerate(closes):
            here = self.ba == n
            is_open, opens = opened[n], activate & here
            m.d.sync += is_open.eq((is_open | opens) & ~close)
            act = self._since(m, opens, max(timing.rc, timing.ras, timing.rcd), f"activate_{n}")
            pre = self._since(m, close & is_open, timing.rp, f"precharge_{n}")
            written = self._since(m, is_[Command.WRITE] & here, last + timing.wr, f"write_{n}")
            read = self._since(m, is_[Command.READ] & here, words, f"read_{n}")
            for rule, event in (
                ("closed", opens & is_open), ("open", access & here & ~is_open),
                ("rcd", access & here & (act < timing.rcd)),
                ("rp", (opens | quiet) & (pre < timing.rp)),
                ("ras", close & is_open & (act < timing.ras)),
                ("rc", opens & (act < timing.rc)),
                ("rrd", activate & ~here & (act < timing.rrd)),
                ("wr", close & (written < last + timing.wr)),
                ("not_cut", close & (read < words)),
                ("refresh_closed", quiet & is_open),
            ):
                broken[rule].append(event)
        for rule, events in broken.items():
            self.check(m, rule, ~Cat(events).any())
        reads = self._since(m, is_[Command.READ], words, "read")
        self.cover(m, "ahead", activate & (reads < words))
        self._cover_rows(m, is_, closes)

    def _cover_rows(self, m, is_, closes):
        """A row of a bank is closed alone, and read again; the rows are refreshed."""
        replaced, used, before = Signal(), Signal(), Signal()
        with m.If(closes[0] & ~self.a[10]):
            m.d.sync += replaced.eq(1)
        with m.If(is_[Command.ACTIVATE]):
            m.d.sync += used.eq(1)
        with m.If(is_[Command.REFRESH]):
            m.d.sync += [replaced.eq(0), before.eq(used)]
        self.cover(m, "replaced", replaced & is_[Command.READ] & (self.ba == 0))
        self.cover(m, "refreshed_again", is_[Command.REFRESH] & before)

    def _words(self, m, is_):
        """Rules of accesses and of the data pins."""
        timing, words = self.timing, self.words
        read, write, every = is_[Command.READ], is_[Command.WRITE], (1 << words) - 1
        is_read = self._since(m, read, words, "read_access")
        written = self._since(m, write, self.write_words, "write")
        whole = (is_read == words) & (written == self.write_words)
        self.check(m, "whole", ~(read | write) | whole)
        # Bit n: the chip drives a word n cycles from now.
        after = Signal(timing.cas + words)
        coming = Signal(timing.cas + words)
        m.d.comb += coming.eq(after | Mux(read, every << timing.cas, 0))
        m.d.sync += after.eq(coming >> 1)
        self.check(m, "one_driver", ~self.dq_oe | ~(coming[0] | self.past(m, coming[0])))
        self.check(m, "mask", ~(coming[2] & self.dqm.any()))
        drives = write | (written < self.write_words)
        self.check(m, "driven", self.dq_oe == drives if self.masks else self.dq_oe | ~drives)
        turn = self._since(m, read, timing.cas + words + 2, "turn")
        self.cover(m, "read_write", write & (turn == timing.cas + words + 1))
        self.cover(m, "write_read", read & (written == self.write_words) & self.past(m, self.dq_oe))

    def _refreshes(self, m, is_, closes):
        """Refreshes are in time, and no row is open for too long."""
        timing = self.timing
        passed, mode = Signal(range(timing.refresh)), Signal(name="mode_is_set")
        owed = Signal(range(timing.postponed + 3))
        tick, made = passed == timing.refresh - 1, is_[Command.REFRESH]
        m.d.sync += [passed.eq(Mux(tick, 0, passed + 1)), mode.eq(mode | is_[Command.MODE])]
        with m.If(mode & tick & ~made):
            m.d.sync += owed.eq(owed + (owed != timing.postponed + 2))
        with m.Elif(mode & made & ~tick & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        self.check(m, "refreshed", owed <= timing.postponed + 1)
        # A row in whose time ``most`` intervals end is open for less than ``(most + 1) * refresh``.
        most, late = timing.postponed + 1, []
        assert (most + 1) * timing.refresh <= timing.ras_max
        for n, close in enumerate(closes):
            is_open, ended = Signal(name=f"row_{n}"), Signal(range(most + 2), name=f"ended_{n}")
            opens = is_[Command.ACTIVATE] & (self.ba == n)
            m.d.sync += is_open.eq((is_open | opens) & ~close)
            with m.If(opens):
                m.d.sync += ended.eq(tick)
            with m.Elif(ended <= most):
                m.d.sync += ended.eq(ended + tick)
            late.append(is_open & (ended > owed))
        self.check(m, "ras_max", ~Cat(late).any())


class ResponseRules(Rules):
    """Rules of the responses of a slave of AXI4 that takes one burst of writes at a time.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: A3.2, A3.3.
    """

    PINS = {
        "aw_payload_len": 8,
        **{f"{channel}_{name}": 1 for channel in ("aw", "w", "b", "r")
           for name in ("valid", "ready")},
        "b_payload_resp": 2, "r_payload_resp": 2, "r_payload_last": 1,
        "r_payload_data": 16,
    }
    RULES = {
        "b_stays": "BVALID, once high, stays so with the same response until BREADY",
        "b_after_reset": "BVALID is low in the cycle after one of reset",
        "b_after_w": "BVALID comes when the address and all beats of a burst have been taken",
        "r_stays": "RVALID, once high, stays so with the same beat until RREADY",
        "r_after_reset": "RVALID is low in the cycle after one of reset",
    }
    COVERS = {
        "b_waits": "a response to a write waits", "r_waits": "a beat that was read waits",
        "b_error": "a write has an error", "r_error": "a read has an error",
        "long": "a burst of several beats is written",
    }

    def elaborate(self, platform):
        m = Module()
        after_reset = self.after_reset(m)
        b_valid, b_ready, b_resp = self.b_valid, self.b_ready, self.b_payload_resp
        r = self.r_payload_resp, self.r_payload_last, self.r_payload_data
        self.check(m, "b_stays", self.stable(m, b_valid, b_ready, b_resp))
        self.check(m, "b_after_reset", ~(after_reset & b_valid))
        self.check(m, "r_stays", self.stable(m, self.r_valid, self.r_ready, *r))
        self.check(m, "r_after_reset", ~(after_reset & self.r_valid))
        addressed, complete, left = Signal(), Signal(), Signal(8)
        with m.If(self.w_valid & self.w_ready):
            m.d.sync += [left.eq(left - 1), complete.eq(left == 0)]
        with m.If(self.aw_valid & self.aw_ready):
            m.d.sync += [addressed.eq(1), left.eq(self.aw_payload_len), complete.eq(0)]
        self.check(m, "b_after_w", ~b_valid | (addressed & complete))
        self.covers(m, {
            "b_waits": b_valid & ~b_ready, "r_waits": self.r_valid & ~self.r_ready,
            "b_error": b_valid & b_resp[1], "r_error": self.r_valid & self.r_payload_resp[1],
            "long": b_valid & ~b_resp[1] & (self._length(m) == 2),
        })
        return m

    def _length(self, m):
        """Beats of the burst that is written, less one."""
        length = Signal(8)
        with m.If(self.aw_valid & self.aw_ready):
            m.d.sync += length.eq(self.aw_payload_len)
        return length


def sdram_bench(words, *, masks=True):
    """The bench of a controller with accesses of ``words`` words, which are its beats.

    ``masks`` tells whether DQM of its chip is wired.

    Its memories are cut: any row may be the one that is open, and a word that is read any word.
    """
    controller = SdramController(replace(CHIP, masks=masks), TIMING, data_bytes=words)
    return FormalBench(controller, {
        "pins_": SdramRules(TIMING, words, masks=masks),
        "axi_": ResponseRules(r_payload_data=8 * words),
    })


class PhaseRules(Rules):
    """The chip is set up again after each step of its clock.

    The master is one of Weft: a burst stays until it is taken, there is one burst of writes at a
    time, and its data end when its address says so.
    """

    PINS = {
        "moved": 1, "pins_ras_n": 1, "pins_cas_n": 1, "pins_we_n": 1,
        **{f"axi_{name}_{part}": 1 for name in ("aw", "w", "b", "ar") for part in (
            "valid", "ready",
        )},
        **{f"axi_{name}_payload_{part}": bits for name in ("aw", "ar") for part, bits in (
            ("addr", 32), ("len", 8),
        )},
        "axi_w_payload_last": 1,
    }
    RULES = {"set_up_again": "the mode is set after a step of the clock, before a READ or WRITE"}
    COVERS = {"read_after_step": "a READ comes after a step of the clock"}

    def elaborate(self, platform):
        m = Module()
        due, stepped = Signal(), Signal()
        pins = Cat(self.pins_we_n, self.pins_cas_n, self.pins_ras_n)
        with m.If(self.moved):
            m.d.sync += [due.eq(1), stepped.eq(1)]
        with m.Elif(pins == Command.MODE.value):
            m.d.sync += due.eq(0)
        read = pins == Command.READ.value
        self.check(m, "set_up_again", ~((read | (pins == Command.WRITE.value)) & due))
        self.cover(m, "read_after_step", read & stepped)
        self._master(m)
        return m

    def _master(self, m):
        open_, complete, left = Signal(), Signal(), Signal(8)  # a burst of writes; beats to come
        aw, w = self.axi_aw_valid, self.axi_w_valid
        for name in ("aw", "ar"):
            valid, ready = (getattr(self, f"axi_{name}_{part}") for part in ("valid", "ready"))
            burst = [getattr(self, f"axi_{name}_payload_{part}") for part in ("addr", "len")]
            self.assume(m, self.stable(m, valid, ready, *burst))
        self.assume(m, self.stable(m, w, self.axi_w_ready, self.axi_w_payload_last))
        beats = Mux(open_, left, self.axi_aw_payload_len)
        self.assume(m, ~(aw & open_))
        self.assume(m, ~w | ((open_ | aw) & ~complete))
        self.assume(m, ~w | (self.axi_w_payload_last == (beats == 0)))
        with m.If(self.axi_aw_valid & self.axi_aw_ready):
            m.d.sync += [open_.eq(1), left.eq(self.axi_aw_payload_len)]
        with m.If(w & self.axi_w_ready):
            m.d.sync += [left.eq(beats - 1), complete.eq(beats == 0)]
        with m.If(self.axi_b_valid & self.axi_b_ready):
            m.d.sync += [open_.eq(0), complete.eq(0)]


class PhasedSdram(wiring.Component):
    """A controller behind the register of the phase of its clock, as on a board."""

    def __init__(self, words):
        self.controller = SdramController(CHIP, TIMING, data_bytes=words)
        super().__init__({
            "axi": In(Axi4(data_bytes=words)), "ar_foreign": In(1), "aw_foreign": In(1),
            "pins": Out(SdramPins(CHIP)), "moved": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.controller = controller = self.controller
        register = phase.connect_controller(
            m, SimpleNamespace(program_bytes=CHIP.size), flipped(self.axi), controller,
            SdramPhase(1, 4),
        )
        m.d.comb += [
            controller.ar_foreign.eq(self.ar_foreign), controller.aw_foreign.eq(self.aw_foreign),
            self.moved.eq(register.moved),
        ]
        connect(m, controller.pins, flipped(self.pins))
        return m


def phase_bench(words):
    """`sdram_bench` of a `PhasedSdram`, whose clock may make a step whenever nothing is open."""
    return FormalBench(PhasedSdram(words), {
        "pins_": SdramRules(TIMING, words), "axi_": ResponseRules(r_payload_data=8 * words),
        "": PhaseRules(),
    })
