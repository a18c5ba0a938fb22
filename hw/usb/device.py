"""The USB device: two byte streams behind a CDC-ACM interface, which every system has a driver for.

LUNA has the gateware of packets, enumeration and endpoints. This file adds what a link without
errors needs: data toggles that start again after a bus reset, and an end of each burst of packets.
"""

from amaranth.hdl import Cat, Const, Elaboratable, Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out
from luna.gateware.stream.generator import StreamSerializer
from luna.gateware.usb.stream import USBInStreamInterface
from luna.gateware.usb.usb2.device import USBDevice
from luna.gateware.usb.usb2.endpoints.stream import USBStreamInEndpoint, USBStreamOutEndpoint
from luna.gateware.usb.usb2.request import USBRequestHandler
from usb_protocol.emitters import DeviceDescriptorCollection
from usb_protocol.emitters.descriptors import cdc
from usb_protocol.types import USBRequestType

from weft.hw.stream.fifo import SkidBuffer
from weft.usb_ids import DEVICE_VERSION, MANUFACTURER, PRODUCT, PRODUCT_ID, VENDOR_ID

__all__ = ["FULL_SPEED_PACKET", "HIGH_SPEED_PACKET", "BurstEnd", "UsbPort"]

FULL_SPEED_PACKET, HIGH_SPEED_PACKET = 64, 512  # maximum bytes of a bulk packet: USB 2.0, 5.8.3
_DATA, _NOTIFICATIONS = 1, 2  # endpoint numbers
_NOTIFICATION_BYTES = 8
_CROSSING = 16  # bytes of a FIFO between two clocks
# Cycles of the USB clock without a byte after which a burst has ended. A frame sender of the
# slowest clock (25 MHz) gives a byte every 0.5 us.
_IDLE = 64
_LINE_CODING = (115_200).to_bytes(4, "little") + bytes([0, 0, 8])  # 1 stop bit, no parity, 8 bits


def _descriptors(packet: int, serial: str):
    """The descriptors of a CDC-ACM device (USB CDC 1.2, PSTN 1.2) with bulk packets of a size."""
    collection = DeviceDescriptorCollection()
    with collection.DeviceDescriptor() as device:
        # Interface association: without it, Windows takes the two interfaces for two functions.
        device.bDeviceClass, device.bDeviceSubclass, device.bDeviceProtocol = 0xEF, 2, 1
        device.idVendor, device.idProduct = VENDOR_ID, PRODUCT_ID
        device.bcdDevice = DEVICE_VERSION
        device.iManufacturer, device.iProduct, device.iSerialNumber = MANUFACTURER, PRODUCT, serial
        device.bNumConfigurations = 1
    with collection.ConfigurationDescriptor() as configuration:
        with configuration.InterfaceAssociationDescriptor() as both:
            both.bFirstInterface, both.bInterfaceCount = 0, 2
            both.bFunctionClass, both.bFunctionSubClass, both.bFunctionProtocol = 2, 2, 0
        with configuration.InterfaceDescriptor() as control:
            control.bInterfaceNumber = 0
            control.bInterfaceClass, control.bInterfaceSubclass = 2, 2
            control.bInterfaceProtocol = 0  # no AT commands: ModemManager does not probe it
            control.add_subordinate_descriptor(cdc.HeaderDescriptorEmitter())
            calls = cdc.CallManagementFunctionalDescriptorEmitter()
            calls.bDataInterface = 1
            control.add_subordinate_descriptor(calls)
            model = cdc.ACMFunctionalDescriptorEmitter()
            model.bmCapabilities = 2  # requests of line coding and of the control line state
            control.add_subordinate_descriptor(model)
            union = cdc.UnionFunctionalDescriptorEmitter()
            union.bControlInterface, union.bSubordinateInterface0 = 0, 1
            control.add_subordinate_descriptor(union)
            with control.EndpointDescriptor() as notifications:
                notifications.bEndpointAddress = 0x80 | _NOTIFICATIONS
                notifications.bmAttributes = 3
                notifications.wMaxPacketSize = _NOTIFICATION_BYTES
                notifications.bInterval = 16
        with configuration.InterfaceDescriptor() as data:
            data.bInterfaceNumber, data.bInterfaceClass = 1, 0x0A
            data.bInterfaceSubclass = data.bInterfaceProtocol = 0
            for address in (_DATA, 0x80 | _DATA):
                with data.EndpointDescriptor() as endpoint:
                    endpoint.bEndpointAddress, endpoint.wMaxPacketSize = address, packet
                    endpoint.bInterval = 0
    return collection


class _SerialRequests(USBRequestHandler):
    """Answers the requests of a CDC-ACM device, which has no line to set.

    pyserial sets the control lines when it opens a port, and fails if the device stalls.
    """

    SET_LINE_CODING, GET_LINE_CODING, SET_CONTROL_LINE_STATE = 0x20, 0x21, 0x22

    def elaborate(self, platform):
        m = Module()
        interface, setup = self.interface, self.interface.setup
        m.submodules.coding = coding = StreamSerializer(
            data_length=len(_LINE_CODING), domain="usb", stream_type=USBInStreamInterface,
            max_length_width=3,
        )
        m.d.comb += [
            *(byte.eq(Const(value, 8))
              for byte, value in zip(coding.data, _LINE_CODING, strict=True)),
            coding.max_length.eq(len(_LINE_CODING)),
        ]
        with m.If(setup.type == USBRequestType.CLASS):
            with m.Switch(setup.request):
                with m.Case(self.SET_LINE_CODING, self.SET_CONTROL_LINE_STATE):
                    m.d.comb += interface.claim.eq(1)
                    with m.If(interface.rx_ready_for_response):
                        m.d.comb += interface.handshakes_out.ack.eq(1)
                    with m.If(interface.status_requested):
                        m.d.comb += self.send_zlp()
                with m.Case(self.GET_LINE_CODING):
                    m.d.comb += [
                        interface.claim.eq(1),
                        coding.start.eq(interface.data_requested),
                        coding.stream.attach(interface.tx),
                        interface.handshakes_out.ack.eq(interface.status_requested),
                    ]
        return m


class _Restarted(Elaboratable):
    """An endpoint of LUNA that is reset by ``restart``.

    Its data toggle must be DATA0 after a bus reset and after SET_CONFIGURATION (USB 2.0, 9.1.1.5);
    LUNA clears it for CLEAR_FEATURE only. Its bytes are of a connection that has ended.

    Each endpoint has a class of its own: LUNA adds the address in memory of the second endpoint of
    a class to its name, so the text of equal designs would differ.
    """

    def __init__(self, endpoint, restart):
        self.interface = endpoint.interface
        self._endpoint, self._restart = endpoint, restart

    def elaborate(self, platform):
        return ResetInserter({"usb": self._restart})(self._endpoint)


class _Receiver(_Restarted):
    """The bytes from the host."""


class _Sender(_Restarted):
    """The bytes to the host."""


class _Notifications(_Restarted):
    """The endpoint that sends nothing."""


class BurstEnd(wiring.Component):
    """Marks the last byte before a pause of ``idle`` cycles; in the clock domain ``usb``.

    A host waits for a packet that is not full, so a burst must end with one. Each byte is held
    until the next one arrives, or until the pause is over.

    Parameters
    ----------
    idle : int

    Attributes
    ----------
    i : In, stream of 8 bits
    o : Out, stream of 8 bits and ``last``
    """

    def __init__(self, *, idle):
        self.idle = idle
        super().__init__({
            "i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "last": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        held = Signal()
        pause = Signal(range(self.idle + 1))  # cycles that are left
        m.d.comb += [
            self.last.eq(pause == 0),
            self.o.valid.eq(held & (self.i.valid | self.last)),
            self.i.ready.eq(~held | (self.o.ready & ~self.last)),
        ]
        # While the next byte waits the pause stands: `last` may not change under an offered byte.
        with m.If((pause != 0) & ~self.i.valid):
            m.d.usb += pause.eq(pause - 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.usb += held.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.usb += [held.eq(1), self.o.payload.eq(self.i.payload), pause.eq(self.idle)]
        return m


class UsbPort(wiring.Component):
    """Bytes from and to a USB host, in the clock domain of the core.

    No byte is lost: the device answers NAK when a direction has no space or no byte. A bus reset
    discards the bytes that wait in an endpoint.

    Parameters
    ----------
    bus : object
        The pins as LUNA takes them: ``d_p``, ``d_n`` and ``pullup`` for full speed, with the clock
        domains ``usb`` (12 MHz) and ``usb_io`` (48 MHz); or ULPI, with ``usb`` (60 MHz).
    packet : int
        Maximum bytes of a bulk packet: `FULL_SPEED_PACKET` or `HIGH_SPEED_PACKET`.
    serial : str
        Serial number of the device, by which a host tells two boards apart.

    Attributes
    ----------
    connect : In
        High for a device that is on the bus; 1 bit, asynchronous.
    rx_bytes : Out, stream of 8 bits
        Bytes from the host.
    tx_bytes : In, stream of 8 bits
        Bytes to the host.
    """

    def __init__(self, bus, *, packet, serial):
        self._bus, self._packet, self._serial = bus, packet, serial
        super().__init__({
            "connect": In(1),
            "rx_bytes": Out(stream.Signature(8)), "tx_bytes": In(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.device = device = USBDevice(bus=self._bus, handle_clocking=False)
        control = device.add_standard_control_endpoint(_descriptors(self._packet, self._serial))
        control.add_request_handler(_SerialRequests())
        restart = Signal()
        receiver = USBStreamOutEndpoint(endpoint_number=_DATA, max_packet_size=self._packet)
        sender = USBStreamInEndpoint(endpoint_number=_DATA, max_packet_size=self._packet)
        notifications = USBStreamInEndpoint(
            endpoint_number=_NOTIFICATIONS, max_packet_size=_NOTIFICATION_BYTES
        )
        for restarted, endpoint in (
            (_Receiver, receiver), (_Sender, sender), (_Notifications, notifications),
        ):
            device.add_endpoint(restarted(endpoint, restart))
        m.d.comb += restart.eq(device.reset_detected | control.interface.config_changed)
        m.submodules.connect = FFSynchronizer(self.connect, device.connect, o_domain="usb")
        m.submodules.rx_fifo = rx_fifo = AsyncFIFO(
            width=8, depth=_CROSSING, w_domain="usb", r_domain="sync"
        )
        m.submodules.tx_fifo = tx_fifo = AsyncFIFO(
            width=8, depth=_CROSSING, w_domain="sync", r_domain="usb"
        )
        m.submodules.burst_end = burst_end = ResetInserter({"usb": restart})(BurstEnd(idle=_IDLE))
        wiring.connect(m, tx_fifo.r_stream, burst_end.i)
        m.d.comb += [
            rx_fifo.w_data.eq(receiver.stream.payload),
            rx_fifo.w_en.eq(receiver.stream.valid),
            receiver.stream.ready.eq(rx_fifo.w_rdy),
            Cat(sender.stream.payload, sender.stream.valid, sender.stream.last).eq(
                Cat(burst_end.o.payload, burst_end.o.valid, burst_end.last)
            ),
            burst_end.o.ready.eq(sender.stream.ready),
        ]
        # A FIFO compares its pointers in each cycle: before or after the logic of the link, that
        # would limit the clock of the core.
        m.submodules.rx_skid = rx_skid = SkidBuffer(8)
        m.submodules.tx_skid = tx_skid = SkidBuffer(8)
        wiring.connect(m, rx_fifo.r_stream, rx_skid.i)
        wiring.connect(m, rx_skid.o, wiring.flipped(self.rx_bytes))
        wiring.connect(m, wiring.flipped(self.tx_bytes), tx_skid.i)
        wiring.connect(m, tx_skid.o, tx_fifo.w_stream)
        return m
