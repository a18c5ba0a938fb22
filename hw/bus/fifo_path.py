"""The data path of FIFO ports: commands and results through CMD_FIFO and RESULT_FIFO."""

from amaranth.hdl import ResetInserter
from amaranth.lib.wiring import connect

from weft.hw.bus.fifo_ports import RxFifo, TxFifo

__all__ = ["FifoPath"]


class FifoPath:
    """Commands and results through the register space; it has no pins of its own."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return {}

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its registers and its crossing."""
        c, with_flush = wrapper.ip.array, ResetInserter(soft_reset.flush)
        tx = TxFifo(bytes_in=c.bytes_in, target=c.target)
        rx = RxFifo(bytes_out=c.bytes_out, target=c.target)
        m.submodules.tx_fifo, m.submodules.rx_fifo = with_flush(tx), with_flush(rx)
        connect(m, csr.commands, tx.i)
        connect(m, tx.commands, crossing.commands)
        connect(m, crossing.results, rx.results)
        connect(m, rx.o, csr.results)
        m.d.comb += [
            csr.cmd_free.eq(tx.free), csr.level.eq(rx.level),
            csr.next_valid.eq(rx.next_valid), csr.job_done.eq(rx.job_done),
            csr.busy.eq(crossing.busy | tx.nonempty),
        ]
