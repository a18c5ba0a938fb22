"""The data path of AXI4-Streams: commands from a slave stream, results to a master stream."""

from amaranth.hdl import ResetInserter
from amaranth.lib.wiring import In, Out, connect

from weft.hw.bus.packet_register import PacketRegister
from weft.hw.stream.skid_buffer import SkidBuffer

__all__ = ["StreamPath"]


class StreamPath:
    """Commands and results through AXI4-Stream."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return {
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1),
            "s_axis_tdata": In(8 * config.bytes_in),
            "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
            "m_axis_tdata": Out(8 * config.bytes_out), "m_axis_tlast": Out(1),
            "m_axis_tid": Out(16), "m_axis_tuser": Out(8),
        }

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its pins and its crossing."""
        c = wrapper.ip.array
        commands, results = SkidBuffer(8 * c.bytes_in), PacketRegister(bytes_out=c.bytes_out)
        m.submodules.commands = ResetInserter(soft_reset.flush)(commands)
        m.submodules.results = results
        connect(m, commands.o, crossing.commands)
        connect(m, crossing.results, results.results)
        word = results.packets.payload
        m.d.comb += [
            commands.i.valid.eq(wrapper.s_axis_tvalid),
            commands.i.payload.eq(wrapper.s_axis_tdata),
            wrapper.s_axis_tready.eq(commands.i.ready),
            results.flush.eq(soft_reset.flush), csr.job_done.eq(results.job_done),
            wrapper.m_axis_tvalid.eq(results.packets.valid),
            results.packets.ready.eq(wrapper.m_axis_tready),
            wrapper.m_axis_tdata.eq(word.data), wrapper.m_axis_tlast.eq(word.last),
            wrapper.m_axis_tid.eq(word.tag), wrapper.m_axis_tuser.eq(word.status),
            csr.busy.eq(crossing.busy | commands.o.valid),
        ]
