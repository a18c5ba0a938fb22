"""The data path of the DMA engine: operands from memory and results to memory, over AXI4."""

from amaranth.hdl import Mux, ResetInserter, Value
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from weft.hw.bus.csr_bank import DMA_ERRORS
from weft.hw.bus.descriptor_regs import DescriptorRegs
from weft.hw.dma.axi import FIXED
from weft.hw.dma.engine import Dma

__all__ = ["DmaPath"]


class DmaPath:
    """Commands and results through the DMA engine, an AXI4 master."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return {
            f"m_axi_{name}": member for name, member in _master(config.bytes_in).items()
        }

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its registers, pins and crossing."""
        ip = wrapper.ip
        descriptors, dma = DescriptorRegs(), Dma(ip.config, window=ip.window)
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
            m.d.comb += [dma.base.eq(csr.dma_base), dma.limit.eq(csr.dma_limit)]
        for name, flow in (("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)):
            self._channel(m, wrapper, name, flow, getattr(dma.axi, name))

    def _channel(self, m, wrapper, name, flow, inner):
        """Connects a channel of the AXI4 master to its pins, and drives the constant pins."""
        valid, ready = (getattr(wrapper, f"m_axi_{name}{pin}") for pin in ("valid", "ready"))
        if flow == Out:
            m.d.comb += [valid.eq(inner.valid), inner.ready.eq(ready)]
        else:
            m.d.comb += [inner.valid.eq(valid), ready.eq(inner.ready)]
        for field in inner.payload.shape().members:
            pin, value = getattr(wrapper, f"m_axi_{name}{field}"), inner.payload[field]
            m.d.comb += pin.eq(value) if flow == Out else Value.cast(value).eq(pin)
        if name in ("aw", "ar"):
            size = ceil_log2(wrapper.ip.config.bytes_in)
            m.d.comb += [
                getattr(wrapper, f"m_axi_{name}{field}").eq(value)
                for field, value in {**FIXED, "size": size}.items()
            ]


def _master(data_bytes):
    """The pins of an AXI4 master whose data has ``data_bytes`` bytes."""
    address = {
        "id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
        "qos": 4,
    }
    response = {"id": 1, "resp": 2}
    channels = {
        "aw": (Out, address), "w": (Out, {"data": 8 * data_bytes, "strb": data_bytes, "last": 1}),
        "b": (In, response), "ar": (Out, address),
        "r": (In, {"id": 1, "data": 8 * data_bytes, "resp": 2, "last": 1}),
    }
    found = {}
    for channel, (flow, payload) in channels.items():
        found |= {f"{channel}{name}": flow(width) for name, width in payload.items()}
        found[f"{channel}valid"] = flow(1)
        found[f"{channel}ready"] = In(1) if flow == Out else Out(1)
    return found
