"""Bugs to sow in the hardware; each of them violates a rule."""

import contextlib
import importlib
import inspect
import types
from dataclasses import dataclass
from unittest.mock import patch

__all__ = ["BUGS", "Bug", "sown"]


@dataclass(frozen=True)
class Bug:
    """A change of a source file that violates a rule.

    Attributes
    ----------
    what : str
        Description.
    proof, rule : str
        Name of one of `verif.formal.proofs.PROOFS`, and of the rule that the bug violates.
    source : str
        Module to change.
    old, new : str
        Text that occurs once in the source, and its replacement.
    """

    what: str
    proof: str
    rule: str
    source: str
    old: str
    new: str


@contextlib.contextmanager
def sown(bug):
    """Within this context the classes of the module have the bug.

    Raises ValueError if ``old`` does not occur exactly once.
    """
    module = importlib.import_module(bug.source)
    source = inspect.getsource(module)
    if (count := source.count(bug.old)) != 1:
        raise ValueError(f"{bug.old!r} must be in {bug.source} once, not {count} times")
    wrong = types.ModuleType(bug.source)
    exec(compile(source.replace(bug.old, bug.new), module.__file__, "exec"), vars(wrong))
    with contextlib.ExitStack() as stack:
        for name, kind in vars(wrong).items():
            if inspect.isclass(kind) and kind.__module__ == bug.source:
                for member, function in vars(kind).items():
                    if inspect.isfunction(function) and member != "__init__":
                        stack.enter_context(patch.object(getattr(module, name), member, function))
        yield


def table(proof, source, *rows):
    """Bugs of one source and one proof, from rows of (what, rule, old, new)."""
    return [
        Bug(what, proof, rule, f"weft.hw.{source}", old, new) for what, rule, old, new in rows
    ]


WISHBONE = [
    ("an aborted access is answered", "asked",
     "m.d.sync += aborted.eq(1)", "m.d.sync += aborted.eq(0)"),
    ("ACK is high with ERR", "one_kind",
     "response.valid & ~aborted & ~response.p.error", "response.valid & ~aborted"),
    ("ACK is high in reset", "after_reset",
     "self.ack_o.eq(response.valid", "self.ack_o.eq(~pending | response.valid"),
]
BUGS = [
    *table(
        "axi", "bus.axi_lite",
        ("a write starts before its data arrive", "s_axil_b_after_aw_and_w",
         "Mux(write_turn, aw_full & w_full & b.free", "Mux(write_turn, aw_full & b.free"),
        ("the response of a write goes to R too", "s_axil_r_after_ar",
         "response.valid & ~was_write", "response.valid"),
        ("a response does not wait for BREADY", "s_axil_b_stays",
         "b.o.ready.eq(self.bready)", "b.o.ready.eq(1)"),
        ("a response does not wait for RREADY", "s_axil_r_stays",
         "r.o.ready.eq(self.rready)", "r.o.ready.eq(1)"),
        ("AW accepts without limit", "s_axil_few",
         "ready.eq(~full | take)", "ready.eq(1)"),
        ("BVALID is high in reset", "s_axil_b_after_reset",
         "self.bvalid.eq(b.o.valid)", "self.bvalid.eq(b.o.valid | b.free)"),
        ("RVALID is high in reset", "s_axil_r_after_reset",
         "self.rvalid.eq(r.o.valid)", "self.rvalid.eq(r.o.valid | r.free)"),
        ("a write with an error is answered DECERR", "s_axil_bresp_known",
         "self.bresp.eq(Mux(b.o.payload, SLVERR", "self.bresp.eq(Mux(b.o.payload, 0b11"),
        ("a read with an error is answered EXOKAY", "s_axil_rresp_known",
         "self.rresp.eq(Mux(r.o.payload[32], SLVERR", "self.rresp.eq(Mux(r.o.payload[32], 0b01"),
    ),
    *table(
        "AXI4-Lite alone", "bus.axi_lite",
        ("writes never get a turn", "aw_bounded",
         "~ar_full, aw_full & w_full", "~ar_full, 0"),
        ("the data of a write wait for reads", "w_bounded",
         "aw_full & w_full & b.free", "aw_full & w_full & b.free & ~ar_full"),
        ("the response of a write is lost", "b_bounded",
         "response.valid & was_write", "response.valid & was_write & ~ar_full"),
        ("reads never get a turn", "ar_bounded",
         "write_turn.eq(Mux(write_turn, ~ar_full,", "write_turn.eq(Mux(write_turn, 1,"),
        ("the response of a read is lost", "r_bounded",
         "response.valid & ~was_write", "response.valid & ~was_write & ~aw_full"),
    ),
    *table(
        "Wishbone alone", "bus.wishbone",
        *WISHBONE,
        ("the response of an aborted access is never accepted", "bounded",
         "pending.eq(0), aborted.eq(0)", "pending.eq(1), aborted.eq(0)"),
        ("a strobe is answered in its own cycle", "once",
         "self.ack_o.eq(response.valid & ~aborted",
         "self.ack_o.eq((request.valid | response.valid)"),
    ),
    *table(
        "Wishbone alone, pipelined", "bus.wishbone",
        *WISHBONE,
        ("STALL is always low", "few", "self.stall_o.eq(~request.ready)", "self.stall_o.eq(0)"),
        ("STALL is always high", "stall_bounded", "self.stall_o.eq(~request.ready)",
         "self.stall_o.eq(1)"),
        ("an access with an error is not answered", "bounded",
         "response.valid & ~aborted & response.p.error", "0"),
    ),
    *table(
        "APB alone", "bus.apb",
        ("a transfer makes two requests", "asked",
         "request.valid.eq(self.psel & ~pending)", "request.valid.eq(self.psel)"),
        ("PSLVERR ignores the end of the transfer", "error_at_end",
         "response.valid & ~dropped & response.p.error", "response.p.error"),
        ("a transfer counts as given up at once", "bounded",
         "(dropped | ~(self.psel & self.penable))", "1"),
        ("PREADY is high in reset", "after_reset",
         "self.pready.eq(response.valid & ~dropped)", "self.pready.eq(response.valid | ~pending)"),
        ("the second transfer makes no request", "bounded",
         "m.d.sync += pending.eq(0)", "m.d.sync += pending.eq(1)"),
    ),
    *table(
        "registers, axi", "bus.register_bank",
        ("a request has two responses", "answered_once",
         "valid.eq(request.valid), addr", "valid.eq(request.valid | valid), addr"),
        ("a request is accepted while another waits", "answered_once",
         "ready.eq(~request.valid | self.never_waits(request.p))", "ready.eq(1)"),
        ("a core register is awaited for ever", "answered_soon",
         "waits = [s.reads[\"core\"] & ~self.reg_ack]", "waits = [s.reads[\"core\"]]"),
        ("a part of a word may be written", "error", "request.p.mask.all()", "1"),
        ("an unaligned access is answered", "error",
         "hit & kind & request.p.aligned", "hit & kind"),
        ("the abort bit starts a soft reset", "reset",
         "s.writes[\"control\"] & s.data[field.low]", "s.writes[\"control\"]"),
        ("any request with the bit set starts an abort", "abort",
         "s.done & s.writes[\"control\"] & s.data[field.low]", "s.valid & s.data[field.low]"),
        ("a write to IRQ_STATUS changes IRQ_ENABLE", "irq_enable",
         "irqs.set.eq(s.done & s.writes[\"irq_enable\"])",
         "irqs.set.eq(s.done & (s.writes[\"irq_enable\"] | s.writes[\"irq_status\"]))"),
        ("an error is not recorded in IRQ_STATUS", "irq_status",
         "\"access_error\": s.done & error", "\"access_error\": 0"),
        ("a command word passes during a soft reset", "command",
         "s.valid & write & ~self.reset_busy", "s.valid & write"),
        ("a result is taken from an empty FIFO", "result",
         "taken.ready.eq(s.valid & read & nonempty)", "taken.ready.eq(s.valid & read)"),
    ),
    *table(
        "registers, axi", "bus.csr_bank",
        ("a soft reset does not clear JOBS_DONE", "jobs_done",
         "jobs_done.eq(0), last_job.eq(0)", "last_job.eq(0)"),
        ("a soft reset does not clear LAST_JOB", "last_job",
         "jobs_done.eq(0), last_job.eq(0)", "jobs_done.eq(0)"),
    ),
    *table(
        "registers, networks", "bus.network_wrapper",
        ("a list begins with any window", "window",
         "self.started & legal & ~self.running", "self.started & ~self.running"),
        ("a list begins while another one runs", "one_list",
         "legal & ~self.running & ~stops", "legal & ~stops"),
        ("a list that does not begin is not refused", "started",
         "self.refused.eq((self.started & ~self.begin) | ", "self.refused.eq("),
        ("a transfer starts while another one is running", "transfer",
         "allowed = ~self.memory_busy & ~self.reset_busy", "allowed = ~self.reset_busy"),
        ("a word is taken without a transfer", "command",
         "self.write_words.valid.eq(words.valid & ~complete)",
         "self.write_words.valid.eq(words.valid)"),
    ),
    *table(
        "registers, axi", "bus.register_bank",
        ("an event in the cycle of its clear is lost", "irq_status",
         "(self.status & ~cleared) | self.events", "(self.status | self.events) & ~cleared"),
        ("irq ignores IRQ_ENABLE", "irq",
         "(self.status & self.enable).any()", "self.status.any()"),
    ),
    *table(
        "registers, dma", "bus.csr_bank",
        ("a descriptor is submitted to a full queue", "descriptor",
         "s.done & submit & ~overflow", "s.done & submit"),
    ),
    *table(
        "stream", "bus.bus_wrapper",
        ("a soft reset removes an offered word", "m_axis_valid_stays",
         "advance & ~cut", "~cut"),
        ("a stalled word is overwritten", "m_axis_data_stay",
         "advance = ~o.valid | o.ready", "advance = ~o.valid | o.ready | skid_valid"),
        ("a soft reset changes an offered word", "m_axis_last_stays",
         "with m.If(advance & cut):", "with m.If(cut):"),
        ("the last word of a cut packet has tag 0", "m_axis_one_id",
         "o.payload.data.eq(0), o.payload.status", "o.payload.tag.eq(0), o.payload.status"),
        ("the tag belongs to the next word", "m_axis_id_stays",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word), o.payload.tag.eq(i_word.tag)]"),
        ("the status belongs to the next word", "m_axis_user_stays",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word), o.payload.status.eq(i_word.status)]"),
    ),
    *table(
        "stream", "bus.bus_wrapper",
        ("TVALID is high in reset", "m_axis_after_reset",
         "wrapper.m_axis_tvalid.eq(results.packets.valid)",
         "wrapper.m_axis_tvalid.eq(results.packets.valid | soft_reset.flush)"),
    ),
    *table(
        "stream", "stream.fifo",
        ("a stalled word is overwritten", "core_commands_stay",
         "advance = self.o.ready | ~self.o.valid",
         "advance = self.o.ready | ~self.o.valid | skid_valid"),
    ),
    *table(
        "AXI4 reads alone", "dma.reader",
        ("ARADDR changes before ARREADY", "ar_stays",
         "& (~self.ar.valid | self.ar.ready)", ""),
        ("ARVALID survives a reset", "ar_after_reset",
         "busy = Signal()\n", "busy = Signal(); self.ar.valid._reset_less = True\n"),
        ("ARADDR counts beats", "ar_kind",
         "self.ar.payload.addr[low:].eq(first | (block << BLOCK))",
         "self.ar.payload.addr.eq(first | (block << BLOCK))"),
        ("a burst crosses the end of its block", "ar_page",
         "Mux(more_blocks, BURST - 1, last[:BLOCK]) - first",
         "Mux(more_blocks, BURST - 1, last[:BLOCK])"),
        ("RREADY is low without a read request", "r_ready",
         "self.r.ready.eq(1)", "self.r.ready.eq(~self.idle)"),
    ),
    *table(
        "program memory, reads", "network_core.memory.program_memory",
        ("a burst of the program memory changes before ARREADY", "ar_stays",
         "(entries.i.ready & (~ar.valid | ar.ready))", "entries.i.ready"),
        ("ARVALID of the program memory survives a reset", "ar_after_reset",
         "entry, ar = entries.i.payload, self.ar\n",
         "entry, ar = entries.i.payload, self.ar; ar.valid._reset_less = True\n"),
        ("a burst of the program memory counts beats", "ar_kind",
         "ar.payload.addr[low:].eq(start)", "ar.payload.addr.eq(start)"),
        ("a burst of the program memory goes beyond its block", "ar_page",
         "~beat[:ceil_log2(BURST)].all()", "~closed.all()"),
        ("data of a list that has ended reach a client", "halted",
         "(take & ~dropped).replicate(2)", "take.replicate(2)"),
        ("data reach both clients", "one_client",
         "Cat(~entry.client, entry.client)", "Cat(1, entry.client)"),
    ),
    *table(
        "program memory, stores", "network_core.memory.program_memory",
        ("a store does not wait for AWREADY", "aw_stays",
         "with m.If(channel.ready):", "with m.If(aw.ready | w.ready):"),
        ("AWVALID of a store survives a reset", "aw_after_reset",
         "aw, w = self.aw, self.w\n", "aw, w = self.aw, self.w; aw.valid._reset_less = True\n"),
        ("a store has an address of a vector", "aw_kind",
         "aw.payload.addr[low:].eq(number[shift:] + self.base[low:])",
         "aw.payload.addr[shift:].eq(number[shift:] + self.base[low:])"),
        ("the last beat of a store is not marked", "w_last",
         "w.payload.last.eq(1)", "w.payload.last.eq(place[0])"),
        ("a store does not await its response", "w_limit",
         "with m.If(self.b.valid):\n", "with m.If(1):\n"),
        ("a response waits for the next store", "b_bounded",
         "self.b.ready.eq(1)", "self.b.ready.eq(self.writes.valid)"),
    ),
    *table(
        "AXI4 reads alone, in order", "dma.reader",
        ("a request is read beyond its last block", "ar_order",
         "more_blocks.eq(last[BLOCK:] != 1)", "more_blocks.eq(last[BLOCK:] != 0)"),
    ),
    *table(
        "address generator alone", "dma.address_generator",
        ("the end of a request ignores its start", "requests_last_beat",
         "(address.addr[:low + BLOCK] + current.task.last_byte) >> low",
         "current.task.last_byte >> low"),
        ("the next request does not wait", "requests_stays",
         "self.tasks.valid.eq(~self.requests.valid | ~current.has_data)", "self.tasks.valid.eq(1)"),
    ),
    *table(
        "write combiner alone", "dma.writer",
        ("a beat is sent twice", "room",
         "beats.valid.eq((s_valid &", "beats.valid.eq(self.beats.valid | (s_valid &"),
        ("the beat count does not restart with a burst", "index",
         "Mux(burst_start, 0, beat.index + 1)", "beat.index + 1"),
        ("a burst ends at the first beat of a block", "block",
         "unit.addr[low : low + BLOCK].all()", "(unit.addr[low : low + BLOCK] == 0)"),
        ("a burst ends only at the end of a row", "block_end",
         "last = s_row_end | (s_beat_end & s_block_end)", "last = s_row_end"),
        ("a cancelled burst has no data", "no_data",
         "beat.no_data.eq(s_cancel & burst_start)", "beat.no_data.eq(s_cancel)"),
        ("the last byte of a row is not written", "written",
         "(unit.last_byte[:bits] >= n)", "(unit.last_byte[:bits] > n)"),
        ("all bytes of a unit are written", "strobes",
         "more | (unit.last_byte[:bits] >= n) for n", "1 for n"),
    ),
    *table(
        "AXI4 writes alone", "dma.writer",
        ("WDATA does not wait for WREADY", "w_stays",
         "words.o.ready.eq(self.w.ready)", "words.o.ready.eq(1)"),
        ("AWLEN is one too large", "aw_kind",
         "aw.payload.len.eq(starts.o.payload.len)", "aw.payload.len.eq(starts.o.payload.len + 1)"),
        ("every burst starts at the last beat of its block", "aw_page",
         "starts.i.payload.addr.eq(beat.addr[low:])",
         "starts.i.payload.addr.eq(beat.addr[low:] | 0x3FF)"),
        ("WLAST is mixed with the next beat's", "w_last",
         "self.w.payload.eq(words.o.payload)",
         "self.w.payload.eq(words.o.payload.as_value() ^ (beat.last << len(beat.data) * 9 // 8))"),
        ("the writer accepts bursts without limit", "w_limit",
         "self.room.eq(in_flight < BURSTS - SLACK)", "self.room.eq(1)"),
        ("an entry without data blocks the responses", "b_bounded",
         "bursts.o.ready.eq(b.valid | oldest.no_data)", "bursts.o.ready.eq(b.valid)"),
        ("a response is accepted without a burst", "b_order",
         "b.ready.eq(bursts.o.valid & ~oldest.no_data)", "b.ready.eq(~oldest.no_data)"),
        ("a beat of a burst is lost", "w_order",
         "words.i.valid.eq(self.beats.valid & ~beat.no_data)",
         "words.i.valid.eq(self.beats.valid & ~beat.no_data & (beat.last | ~self.w.valid))"),
        ("AWLEN belongs to the next burst", "aw_order",
         "aw.payload.len.eq(starts.o.payload.len)", "aw.payload.len.eq(beat.index)"),
        ("AWADDR belongs to the next burst", "aw_addr",
         "aw.payload.addr[low:].eq(starts.o.payload.addr)",
         "aw.payload.addr[low:].eq(beat.addr[low:])"),
    ),
    *table(
        "AXI4 writes alone", "stream.fifo",
        ("the next address comes before AWREADY", "aw_stays",
         "advance.eq(~self.o.valid | self.o.ready)", "advance.eq(1)"),
        *((f"{pin} survives a reset", rule,
         "read_addr = Signal.like(write_addr)",
         "read_addr = Signal.like(write_addr); self.o.valid._reset_less = True")
          for pin, rule in (("AWVALID", "aw_after_reset"), ("WVALID", "w_after_reset"))),
    ),
    *table(
        "list execution alone", "network_core.lists.list_execution",
        ("a job starts while another one runs", "after_stores",
         "start_ok & (~busy | ending) & log.accepts", "start_ok & log.accepts"),
        ("a job does not wait for loads", "after_loads",
         "jobs.ready & jobs.satisfied & log.inside &", "jobs.ready & log.inside &"),
        ("a load does not wait for jobs", "after_jobs",
         "loads.ready & loads.satisfied &", "loads.ready &"),
        ("the next load is read before one is taken", "one_load",
         "loads.take.eq(request.valid & request.ready)", "loads.take.eq(request.valid)"),
        ("a job starts without space in the log", "log_inside",
         "jobs.ready & jobs.satisfied & log.inside &", "jobs.ready & jobs.satisfied &"),
    ),
    *table(
        "list execution alone, jobs start early", "network_core.lists.list_execution",
        ("a job starts before the job before is ending", "after_steps",
         "start_ok & (~busy | ending) & log.accepts", "start_ok & log.accepts"),
        ("the output of a job starts before the job before has ended", "after_stores",
         "may_begin = waits & (~stores | self.job_done)", "may_begin = waits"),
        ("the output of a job starts again after its end", "own_output",
         "[stores.eq(1), waits.eq(0), fields.eq(job)]", "[stores.eq(1), fields.eq(job)]"),
    ),
    *table(
        "list execution alone, option early", "network_core.lists.list_execution",
        ("a job without the flag starts early", "flag",
         "~busy | ending, ~job_busy | self.job_done", "~busy | ending, ~busy | ending"),
        ("a job starts before the steps of the job before have ended", "after_steps",
         "jobs.next.early, ~busy | ending,", "jobs.next.early, stores,"),
        ("a job starts before the output of the job before", "one_waits",
         "ready &= ~waits & ~self", "ready &= ~self"),
        ("a job starts before the place of its entry of the log is checked", "log_inside",
         "~self.output_job.start & ~output_started", "1"),
        ("the gate of panels opens too early", "follows",
         "self.follows.eq(waits & stores)", "self.follows.eq(waits & stores & ~log.accepts)"),
    ),
    *table(
        "panel gate alone", "network_core.steps.panels",
        ("a panel reads a pixel too early", "stored",
         "(self.origin.as_value().as_signed() < limit)",
         "(self.origin.as_value().as_signed() <= limit)"),
        ("a panel passes because the one before it did", "stored",
         "self.i.valid & ~self.i.ready & (self", "(reached | self.i.valid) & (self"),
        ("a panel waits for a job that has ended", "at_once",
         "passes.eq(~self.follows | reached)", "passes.eq(reached)"),
    ),
    *table(
        "list execution alone", "network_core.lists.reader_head",
        ("a job waits for one load too few", "after_loads",
         "self.counted >= total", "self.counted + 1 >= total"),
    ),
    *table(
        "list execution alone", "network_core.lists.descriptor_reader",
        ("a descriptor outside the limits is read", "reads_inside",
         "issue.eq(advance & (left != 0) & inside)", "issue.eq(advance & (left != 0))"),
    ),
    *table(
        "list loader alone", "network_core.loads.loader",
        ("vectors outside the limits are read", "inside",
         "request.valid.eq(c_valid & inside)", "request.valid.eq(c_valid)"),
        ("a load ends after its first word", "done_last",
         "self.load.done.eq(last)", "self.load.done.eq(take & word_end)"),
        ("a fill writes no lines", "done_with_write",
         "w_target.eq(target & take.replicate(len(target)))",
         "w_target.eq(target & ~(load.fill << 1) & take.replicate(len(target)))"),
        ("a fill reads its source", "fill", "active.eq(~payload.fill)", "active.eq(1)"),
    ),
    *table(
        "SDRAM controller", "sdram.scheduler",
        ("the chip is set up too early", "pins_power_up",
         "refresh.due == timing.power_up", "refresh.due == 0"),
        ("the mode is not set", "pins_set_up", "with m.Elif(~refresh.ready):", "with m.Elif(0):"),
        ("a row is opened while another one is open", "pins_closed",
         "ahead.bank_open.eq(is_open)", "ahead.bank_open.eq(0)"),
        ("rows are taken for open after a refresh", "pins_open",
         "banks.opened.eq(0), banks.wait", "banks.wait"),
        ("an access comes a cycle too early", "pins_rcd", "self.timing.rcd - 2", "0"),
        ("a row is opened as soon as another one is closed", "pins_rp",
         "banks.wait.eq(self.timing.rp - 1)", "banks.wait.eq(0)"),
        ("a row is closed too early", "pins_ras", "~used & (banks.hold == 0)", "~used"),
        ("two rows of a bank follow too early", "pins_rc", ", timing.rc - timing.rp - 1)", ")"),
        ("a row is opened as soon as one was opened again", "pins_rrd",
         'm.next = "REOPEN"', 'm.next = "RUN"'),
        ("refreshes follow at once", "pins_rfc",
         "banks.wait.eq(timing.rfc - 1)", "banks.wait.eq(0)"),
        ("rows are opened as soon as the mode is set", "pins_mrd",
         "banks.wait.eq(timing.mrd - 1)", "banks.wait.eq(0)"),
        ("a row is closed too early after a write", "pins_wr",
         "m.d.sync += banks.hold.eq(banks.longest_hold)", "m.d.sync += banks.hold.eq(0)"),
        ("one row stays open in a refresh", "pins_refresh_closed",
         "self.a.eq(ALL_BANKS)", "self.a.eq(0)"),
        ("an access cuts the one before it", "pins_whole",
         "now.phase.eq(words - 1)", "now.phase.eq(words - 2)"),
        ("a refresh cuts a read", "pins_not_cut",
         "with m.If((now.phase == 0) & (banks.hold", "with m.If((banks.hold"),
        ("a write follows a read at once", "pins_one_driver",
         "now.turn.eq(now.turn_cycles(self.timing))", "now.turn.eq(0)"),
        ("data are driven in reads", "pins_driven",
         "self.write_word.eq(now.write)", "self.write_word.eq(1)"),
        ("too many refreshes are postponed", "pins_refreshed",
         "(refresh.due >= postponed)", "(refresh.due >= postponed + 3)"),
        ("rows stay open in refreshes", "pins_ras_max",
         "self.command.eq(Command.PRECHARGE), self.a.eq(ALL_BANKS)",
         "self.command.eq(Mux(self.ready, Command.NOP, Command.PRECHARGE)), self.a.eq(ALL_BANKS)"),
    ),
    *table(
        "SDRAM controller, 8 words", "sdram.scheduler",
        ("a row is closed while the last words of the request before are read", "pins_not_cut",
         "now.access_bank == bank", "now.bank == bank"),
    ),
    *table(
        "SDRAM controller", "sdram.controller",
        ("reads are masked", "pins_mask", "writes.mask.eq(~scheduler.ready)", "writes.mask.eq(1)"),
        ("a beat changes while it waits", "axi_r_stays",
         "pop.eq(waits & (~self.valid | self.ready)", "pop.eq(waits"),
        ("RVALID is not reset", "axi_r_after_reset",
         "waits, pop = Signal(), Signal()",
         "waits, pop = Signal(), Signal(); self.valid._reset_less = True"),
    ),
    *table(
        "SDRAM controller", "sdram.bursts",
        ("a response does not wait for BREADY", "axi_b_stays",
         "with m.If(b.valid & b.ready):", "with m.If(b.valid):"),
        ("a burst is answered after its first beat", "axi_b_after_w",
         "b.valid.eq(end)", "b.valid.eq(1)"),
        ("BVALID is not reset", "axi_b_after_reset",
         "w, b = self.w, self.b", "w, b = self.w, self.b; b.valid._reset_less = True"),
    ),
]
