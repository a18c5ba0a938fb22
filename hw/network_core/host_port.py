"""The host port: executes the frames of a link on a network core, and answers them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.host_answers import HostAnswers
from weft.hw.network_core.host_commands import HostCommands
from weft.hw.network_core.interface import NetworkInterface
from weft.hw.serial.network_link import HostFrames

__all__ = ["HostPort"]


class HostPort(wiring.Component):
    """Translates between frames (``docs/network-core.md``) and the ports of a network core.

    A list may use the whole memory: ``core.base`` and ``core.limit`` are constants.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    frames : In, `weft.hw.serial.network_link.HostFrames`
    core : Out, `weft.hw.network_core.interface.NetworkInterface`
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "frames": In(HostFrames()),
            "core": Out(NetworkInterface(config)),
        })

    def elaborate(self, platform):
        m = Module()
        frames, core = self.frames, self.core
        m.submodules.commands = commands = HostCommands(self.config)
        m.submodules.answers = answers = HostAnswers(self.config)
        connect(m, flipped(frames.commands), commands.commands)
        connect(m, flipped(frames.request), answers.request)
        connect(m, flipped(frames.ack), answers.ack)
        connect(m, answers.frame, flipped(frames.frame))
        connect(m, answers.payload, flipped(frames.payload))
        connect(m, commands.writes, flipped(core.writes))
        connect(m, answers.reads, flipped(core.reads))
        executed = Signal()  # all accepted frames were executed, in the cycle before
        m.d.comb += [
            answers.read_valid.eq(core.read_valid), answers.read_data.eq(core.read_data),
            answers.executed.eq(executed), core.limit.eq(self.config.words),
        ]
        m.d.sync += executed.eq(commands.idle & ~frames.pending)
        # Where flip-flops are scarce the status has no register of its own.
        domain = "comb" if self.config.array.family.serial_epilogue else "sync"
        m.d[domain] += answers.status.eq(core.status)
        self._begin_lists(m, commands, answers, executed)
        return m

    def _begin_lists(self, m, commands, answers, executed):
        """Begin the list of a START frame, and send DONE when it has ended.

        After an abort, the START frames that were accepted before it are cancelled.
        """
        core, begin = self.core, commands.list
        running, cancel = Signal(), Signal()
        start = Signal()  # it begins in this cycle, unless an abort comes
        m.d.sync += start.eq(0)
        # The fields of a START frame stay for more than a cycle after ``ready``.
        m.d.comb += [core.begin.eq(begin.payload), core.begin.valid.eq(start & ~answers.abort)]
        with m.If(executed):
            m.d.sync += cancel.eq(0)
        with m.If(answers.done.ready):
            m.d.sync += answers.done.valid.eq(0)
        with m.If(cancel):
            m.d.comb += begin.ready.eq(1)
        with m.Elif(running):
            m.d.comb += [
                answers.refused.valid.eq(begin.valid), begin.ready.eq(answers.refused.ready),
            ]
        with m.Elif(begin.valid & answers.idle & ~answers.done.valid):
            m.d.comb += begin.ready.eq(1)
            m.d.sync += [
                start.eq(1), running.eq(1), answers.done.payload.eq(commands.sequence),
            ]
        with m.If(running & core.finished):
            m.d.sync += [running.eq(0), answers.done.valid.eq(1)]
        m.d.comb += [core.abort.eq(answers.abort), answers.refused.payload.eq(commands.sequence)]
        with m.If(answers.abort):
            m.d.sync += [running.eq(0), answers.done.valid.eq(0), cancel.eq(1)]
