"""Bugs that are sown in the hardware, each of which breaks a rule."""

import contextlib
import importlib
import inspect
import types
from dataclasses import dataclass
from unittest.mock import patch

__all__ = ["BUGS", "Bug", "sown"]


@dataclass(frozen=True)
class Bug:
    """A text of a source that is wrong.

    Attributes
    ----------
    what : str
        In words.
    proof, rule : str
        One of `weft.sim.formal.proofs.PROOFS`, and the rule of it that is broken.
    source : str
        A module.
    old, new : str
        A text that is there once, and what takes its place.
    """

    what: str
    proof: str
    rule: str
    source: str
    old: str
    new: str


@contextlib.contextmanager
def sown(bug):
    """Its module's classes do what the wrong text says.

    Raises ValueError where the right text is not there, once.
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
    """Bugs of a source, of rows (what, rule, old, new), that break rules of one proof."""
    return [
        Bug(what, proof, rule, f"weft.hw.{source}", old, new) for what, rule, old, new in rows
    ]


BUGS = [
    *table(
        "axi", "bus.axi_lite",
        ("a write acts before its data are here", "s_axil_b_after_aw_and_w",
         "Mux(write_turn, aw_full & w_full & b.free", "Mux(write_turn, aw_full & b.free"),
        ("an answer to a write is one to a read too", "s_axil_r_after_ar",
         "response.valid & ~was_write", "response.valid"),
        ("no answer waits for BREADY", "s_axil_b_stays",
         "b.o.ready.eq(self.bready)", "b.o.ready.eq(1)"),
        ("no answer waits for RREADY", "s_axil_r_stays",
         "r.o.ready.eq(self.rready)", "r.o.ready.eq(1)"),
        ("addresses of writes are taken without end", "s_axil_few",
         "ready.eq(~full | take)", "ready.eq(1)"),
        ("BVALID is high in reset", "s_axil_b_after_reset",
         "self.bvalid.eq(b.o.valid)", "self.bvalid.eq(b.o.valid | b.free)"),
        ("RVALID is high in reset", "s_axil_r_after_reset",
         "self.rvalid.eq(r.o.valid)", "self.rvalid.eq(r.o.valid | r.free)"),
        ("a write that is refused is a decode error", "s_axil_bresp_known",
         "self.bresp.eq(Mux(b.o.payload, SLVERR", "self.bresp.eq(Mux(b.o.payload, 0b11"),
        ("a read that is refused is exclusive", "s_axil_rresp_known",
         "self.rresp.eq(Mux(r.o.payload[32], SLVERR", "self.rresp.eq(Mux(r.o.payload[32], 0b01"),
    ),
    *table(
        "AXI4-Lite alone", "bus.axi_lite",
        ("writes never get their turn", "aw_bounded",
         "~ar_full, aw_full & w_full", "~ar_full, 0"),
        ("data of a write wait for reads", "w_bounded",
         "aw_full & w_full & b.free", "aw_full & w_full & b.free & ~ar_full"),
        ("an answer to a write is lost", "b_bounded",
         "response.valid & was_write", "response.valid & was_write & ~ar_full"),
        ("reads never get their turn", "ar_bounded",
         "write_turn.eq(Mux(write_turn, ~ar_full,", "write_turn.eq(Mux(write_turn, 1,"),
        ("an answer to a read is lost", "r_bounded",
         "response.valid & ~was_write", "response.valid & ~was_write & ~aw_full"),
    ),
    *table(
        "Wishbone alone", "bus.wishbone",
        ("what was given up is answered", "asked",
         "m.d.sync += aborted.eq(1)", "m.d.sync += aborted.eq(0)"),
        ("ACK is high with ERR", "one_kind",
         "response.valid & ~aborted & ~response.p.error", "response.valid & ~aborted"),
        ("ACK is high in reset", "after_reset",
         "self.ack_o.eq(response.valid", "self.ack_o.eq(~pending | response.valid"),
        ("what was given up is never answered", "bounded",
         "pending.eq(0), aborted.eq(0)", "pending.eq(1), aborted.eq(0)"),
        ("a strobe is answered at once", "once",
         "self.ack_o.eq(response.valid & ~aborted",
         "self.ack_o.eq((request.valid | response.valid)"),
    ),
    *table(
        "Wishbone alone, pipelined", "bus.wishbone",
        ("what was given up is answered", "asked",
         "m.d.sync += aborted.eq(1)", "m.d.sync += aborted.eq(0)"),
        ("ACK is high with ERR", "one_kind",
         "response.valid & ~aborted & ~response.p.error", "response.valid & ~aborted"),
        ("ACK is high in reset", "after_reset",
         "self.ack_o.eq(response.valid", "self.ack_o.eq(~pending | response.valid"),
        ("nothing is stalled", "few", "self.stall_o.eq(~request.ready)", "self.stall_o.eq(0)"),
        ("all is stalled", "stall_bounded", "self.stall_o.eq(~request.ready)",
         "self.stall_o.eq(1)"),
        ("a refused access is not answered", "bounded",
         "response.valid & ~aborted & response.p.error", "0"),
    ),
    *table(
        "registers, axi", "bus.csr_bank",
        ("an access is answered twice", "answered_once",
         "valid.eq(request.valid), addr", "valid.eq(request.valid | valid), addr"),
        ("an access is taken while another waits", "answered_once",
         "ready.eq(~request.valid | self._never_waits(request.p))", "ready.eq(1)"),
        ("a word that does not come is waited for", "answered_soon",
         "waits = [s.reads[\"core\"] & ~self.reg_ack]", "waits = [s.reads[\"core\"]]"),
        ("a part of a word is written", "refused_right", "request.p.mask.all()", "1"),
        ("a soft reset is an abort's bit too", "reset_right",
         "control & s.data[fields[\"reset\"].low]", "control"),
        ("an abort is given by a refused write", "abort_right",
         "control & s.data[fields[\"abort\"].low]", "s.valid & s.data[fields[\"abort\"].low]"),
        ("IRQ_ENABLE is what is written to IRQ_STATUS too", "enable_right",
         "irqs.set.eq(s.done & s.writes[\"irq_enable\"])",
         "irqs.set.eq(s.done & (s.writes[\"irq_enable\"] | s.writes[\"irq_status\"]))"),
        ("a refused access is not told", "status_right",
         "\"access_error\": s.done & error", "\"access_error\": 0"),
        ("a soft reset counts as a job", "ended_right",
         "jobs_done.eq(0), last_job.eq(0)", "last_job.eq(0)"),
        ("a soft reset keeps the last job", "last_right",
         "jobs_done.eq(0), last_job.eq(0)", "jobs_done.eq(0)"),
        ("a command word goes on in a soft reset", "command_right",
         "s.valid & write & ~self.reset_busy", "s.valid & write"),
        ("a result that is not there is taken", "result_right",
         "results.ready.eq(s.valid & read & level.nonempty)",
         "results.ready.eq(s.valid & read)"),
    ),
    *table(
        "registers, axi", "bus.interrupts",
        ("what happens as it is cleared is lost", "status_right",
         "(self.status & ~cleared) | self.events", "(self.status | self.events) & ~cleared"),
        ("irq does not wait for what is enabled", "irq_right",
         "(self.status & self.enable).any()", "self.status.any()"),
    ),
    *table(
        "registers, dma", "bus.csr_bank",
        ("a descriptor is queued where there is no room", "descriptor_right",
         "s.done & submit & ~overflow", "s.done & submit"),
    ),
    *table(
        "stream", "bus.packet_register",
        ("a soft reset takes what is on offer", "m_axis_valid_stays",
         "advance & ~cut", "~cut"),
        ("a word that waits is written over", "m_axis_data_stay",
         "advance = ~o.valid | o.ready", "advance = ~o.valid | o.ready | skid_valid"),
        ("a packet is cut within a word", "m_axis_last_stays",
         "with m.If(advance & cut):", "with m.If(cut):"),
        ("a packet that is cut has no tag", "m_axis_one_id",
         "o.payload.data.eq(0), o.payload.status", "o.payload.tag.eq(0), o.payload.status"),
        ("the tag is the next word's", "m_axis_id_stays",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word), o.payload.tag.eq(i_word.tag)]"),
        ("the status is the next word's", "m_axis_user_stays",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]",
         "m.d.sync += [skid_valid.eq(1), skid.eq(i_word), o.payload.status.eq(i_word.status)]"),
    ),
    *table(
        "stream", "bus.bus_wrapper",
        ("TVALID is high in reset", "m_axis_after_reset",
         "self.m_axis_tvalid.eq(results.packets.valid)",
         "self.m_axis_tvalid.eq(results.packets.valid | soft_reset.flush)"),
    ),
    *table(
        "stream", "stream.skid_buffer",
        ("a word that waits is written over", "core_commands_stay",
         "advance = self.o.ready | ~self.o.valid",
         "advance = self.o.ready | ~self.o.valid | skid_valid"),
    ),
    *table(
        "AXI4 reads alone", "dma.reader",
        ("an address leaves before it is taken", "ar_stays",
         "& (~self.ar.valid | self.ar.ready)", ""),
        ("ARVALID survives a reset", "ar_after_reset",
         "there = Signal()\n", "there = Signal(); self.ar.valid._reset_less = True\n"),
        ("an address is of a byte", "ar_kind",
         "self.ar.payload.addr[low:].eq(first | (blocks << block))",
         "self.ar.payload.addr.eq(first | (blocks << block))"),
        ("a burst ends behind its block", "ar_page",
         "Mux(more, BURST - 1, last[:block]) - first", "Mux(more, BURST - 1, last[:block])"),
        ("beats wait where nothing is asked for", "r_taken",
         "self.r.ready.eq(1)", "self.r.ready.eq(~self.idle)"),
    ),
    *table(
        "AXI4 reads alone, in order", "dma.reader",
        ("a stretch goes on beyond its last block", "ar_order",
         "more.eq(last[block:] != 1)", "more.eq(last[block:] != 0)"),
    ),
    *table(
        "operands walked", "dma.address_generator",
        ("the end is not that of where it begins", "stretches_behind",
         "(self.cur[:low + BLOCK] + self.common.most) >> low", "self.common.most >> low"),
        ("the next one does not wait", "stretches_stays",
         "self.pieces.valid.eq(~self.stretches.valid | ~self.real)", "self.pieces.valid.eq(1)"),
    ),
    *table(
        "results gathered", "dma.write_combiner",
        ("a beat leaves twice", "room",
         "beats.valid.eq((valid &", "beats.valid.eq(self.beats.valid | (valid &"),
        ("beats are counted through", "count",
         "Mux(closed, 0, beat.count + 1)", "beat.count + 1"),
        ("a burst ends with the first beat of a block", "block",
         "unit.addr[low : low + BLOCK].all()", "(unit.addr[low : low + BLOCK] == 0)"),
        ("a burst ends with its row only", "goes_on",
         "last = row_end | (fills & block_end)", "last = row_end"),
        ("what is cut off is void", "void", "beat.void.eq(cut & closed)", "beat.void.eq(cut)"),
        ("the last byte of a row is not written", "written",
         "(unit.most[:share] >= n)", "(unit.most[:share] > n)"),
        ("all of a unit is written", "strobes",
         "more | (unit.most[:share] >= n) for n", "1 for n"),
    ),
    *table(
        "AXI4 writes alone", "dma.writer",
        ("data leave at once", "w_stays",
         "words.o.ready.eq(self.w.ready)", "words.o.ready.eq(1)"),
        ("a burst is a beat too long", "aw_kind",
         "aw.payload.len.eq(starts.o.payload.len)", "aw.payload.len.eq(starts.o.payload.len + 1)"),
        ("a burst begins in its block's last beat", "aw_page",
         "starts.i.payload.addr.eq(beat.addr[low:])",
         "starts.i.payload.addr.eq(beat.addr[low:] | 0x3FF)"),
        ("WLAST is of the beat before", "w_last",
         "self.w.payload.eq(words.o.payload)",
         "self.w.payload.eq(words.o.payload.as_value() ^ (beat.last << len(beat.data) * 9 // 8))"),
        ("bursts are let in without end", "w_few",
         "self.room.eq(waiting < BURSTS - SLACK)", "self.room.eq(1)"),
        ("what is void holds up answers", "b_bounded",
         "bursts.o.ready.eq(b.valid | oldest.void)", "bursts.o.ready.eq(b.valid)"),
        ("an answer is of what is not put", "b_order",
         "b.ready.eq(bursts.o.valid & ~oldest.void)", "b.ready.eq(~oldest.void)"),
        ("a beat of a burst is left out", "w_order",
         "words.i.valid.eq(self.beats.valid & ~beat.void)",
         "words.i.valid.eq(self.beats.valid & ~beat.void & (beat.last | ~self.w.valid))"),
        ("a burst has the length of the one that comes", "aw_order",
         "aw.payload.len.eq(starts.o.payload.len)", "aw.payload.len.eq(beat.count)"),
        ("a burst has the address of the one that comes", "aw_addr",
         "aw.payload.addr[low:].eq(starts.o.payload.addr)",
         "aw.payload.addr[low:].eq(beat.addr[low:])"),
    ),
    *table(
        "AXI4 writes alone", "stream.fifo",
        ("the next address comes before the last is taken", "aw_stays",
         "advance.eq(~self.o.valid | self.o.ready)", "advance.eq(1)"),
        *((f"{pin} survives a reset", rule,
         "read_addr = Signal.like(write_addr)",
         "read_addr = Signal.like(write_addr); self.o.valid._reset_less = True")
          for pin, rule in (("AWVALID", "aw_after_reset"), ("WVALID", "w_after_reset"))),
    ),
]
