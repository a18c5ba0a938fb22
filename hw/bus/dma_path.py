"""The data path of the DMA engine: operands from memory and results to memory, over AXI4."""

from amaranth.hdl import Mux, ResetInserter
from amaranth.lib.wiring import connect

from weft.hw.bus.csr_bank import DMA_ERRORS
from weft.hw.bus.descriptor_regs import DescriptorRegs
from weft.hw.dma.axi_pins import connect_master, master_pins
from weft.hw.dma.engine import Dma

__all__ = ["DmaPath"]


class DmaPath:
    """Commands and results through the DMA engine, an AXI4 master."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return master_pins(config.bytes_in)

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its registers, pins and crossing."""
        ip = wrapper.ip
        descriptors, dma = DescriptorRegs(), Dma(ip.array, window=ip.window)
        m.submodules.descriptors = ResetInserter(soft_reset.flush)(descriptors)
        m.submodules.dma = dma
        connect(m, descriptors.o, dma.descriptors)
        connect(m, dma.commands, crossing.commands)
        connect(m, crossing.results, dma.results)
        m.d.comb += [
            descriptors.write.eq(csr.descriptor.write), descriptors.index.eq(csr.descriptor.index),
            descriptors.data.eq(csr.descriptor.data),
            descriptors.submit.eq(csr.descriptor.submit),
            csr.descriptor_word.eq(descriptors.word), csr.submitting.eq(descriptors.submitting),
            csr.desc_free.eq(Mux(soft_reset.reset_busy, 0, dma.desc_free)),
            dma.stop.eq(soft_reset.stop | soft_reset.flush), soft_reset.idle.eq(dma.idle),
            csr.dma_busy.eq(dma.busy | descriptors.submitting),
            csr.busy.eq(crossing.busy),
            csr.job_done.valid.eq(dma.job_done), csr.job_done.tag.eq(dma.job_tag),
            csr.job_done.status.eq(dma.job_status),
            *(csr.errors[name].eq(getattr(dma, name)) for name in DMA_ERRORS),
        ]
        if ip.window:
            m.d.comb += [
                dma.allowed.base.eq(csr.dma_base), dma.allowed.limit.eq(csr.dma_limit),
            ]
        connect_master(m, wrapper, dma.axi, ip.array.bytes_in)
