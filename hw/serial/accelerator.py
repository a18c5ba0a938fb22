"""A complete core behind a serial port; a board adds only a clock."""

from dataclasses import replace

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.design import PerKind
from weft.frames import WRITE_FIELDS
from weft.hw.core import Core
from weft.hw.dma.axi import Axi4
from weft.hw.language_core.core import language_core
from weft.hw.language_core.host_port import LanguageHostPort
from weft.hw.network_core.core import network_core
from weft.hw.network_core.host.host_port import HostPort
from weft.hw.serial.frame_receiver import LANGUAGE_FRAMES, NETWORK_FRAMES
from weft.hw.serial.link import Link, NetworkLink
from weft.hw.serial.uart import UartReceiver, UartTransmitter
from weft.network_core.descriptors import NetworkState

__all__ = ["SerialAccelerator", "linked_core", "memory_port", "memory_side"]


def _product_core(m, config, fast, memory):
    """Add the link and the core of a Config; the link, and whether the core is busy."""
    m.submodules.link = link = Link(config, fast=fast)
    m.submodules.core = core = Core(config)
    connect(m, link.core, core)
    return link, core.activity.busy


def _network_core(m, config, fast, memory):
    """The same for a NetworkCoreConfig, with the host port between the link and the core."""
    m.submodules.link = link = NetworkLink(
        target=config.target, fast=fast,
        accepted=replace(NETWORK_FRAMES, max_payload=WRITE_FIELDS + config.write_bytes),
    )
    m.submodules.host_port = host_port = HostPort(config)
    m.submodules.core = core = network_core(config)
    connect(m, link.frames, host_port.frames)
    connect(m, host_port.core, core)
    if config.program_words:
        connect(m, host_port.memory, memory)
    return link, core.status.state == NetworkState.RUNNING


def _language_core(m, config, fast, memory):
    """The same for a LanguageCoreConfig."""
    m.submodules.link = link = NetworkLink(
        target=config.target, accepted=LANGUAGE_FRAMES, fast=fast
    )
    m.submodules.core = core = language_core(config)
    m.submodules.host_port = host_port = LanguageHostPort(config, core)
    connect(m, link.frames, host_port.frames)
    return link, core.busy


_CORES = PerKind(product=_product_core, network=_network_core, language=_language_core)


def linked_core(m, config, *, fast=False, memory=None):
    """Add the core of a Design and its link to ``m``; the link, and whether the core is busy.

    ``fast`` is as of `weft.hw.serial.link.Link`. ``memory`` is the side of the memory of an `Axi4`,
    for a network core with a program memory.
    """
    return _CORES.of(config)(m, config, fast, memory)


def memory_port(config) -> dict:
    """The port ``memory`` of what has a `linked_core`: an `Axi4`, or none."""
    return _MEMORIES.of(config)(config)


def memory_side(accelerator):
    """The side of the memory of the port ``memory``; None without one."""
    port = getattr(accelerator, "memory", None)
    return None if port is None else flipped(port)


_MEMORIES = PerKind(
    product=lambda config: {},
    network=lambda config: {
        "memory": Out(Axi4(data_bytes=config.beat_bytes))
    } if config.program_words else {},
    language=lambda config: {},
)


class SerialAccelerator(wiring.Component):
    """The core of a Design, its link and its serial port.

    Parameters
    ----------
    config : Config, NetworkCoreConfig or LanguageCoreConfig
    divisor : int
        Clock cycles per bit of the serial port: 4 or more.

    Attributes
    ----------
    rx : In
        Serial input; 1 bit, asynchronous to the clock, high when idle.
    tx : Out
        Serial output; 1 bit, high when idle.
    memory : Out, `weft.hw.dma.axi.Axi4`; only of a network core with a program memory
        To this memory.
    busy : Signal
        The core computes; 1 bit. It is no port, because only boards with LEDs use it.
    rx_error : Signal
        Pulse: a byte from the host is damaged or lost; 1 bit. It is no port either.
    """

    def __init__(self, config, *, divisor):
        self.config = config
        self.divisor = divisor
        self.busy, self.rx_error = Signal(), Signal()
        super().__init__({
            "rx": In(1, init=1), "tx": Out(1, init=1), **memory_port(config),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(divisor=self.divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(divisor=self.divisor)
        link, busy = linked_core(m, self.config, memory=memory_side(self))
        connect(m, receiver.bytes, link.rx_bytes)
        connect(m, link.tx_bytes, transmitter.bytes)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            link.rx_error.eq(receiver.error),
            self.rx_error.eq(receiver.error),
            self.busy.eq(busy),
        ]
        return m
