"""A USB host, from the specification: packets with their CRCs, transactions, enumeration.

It shares no code with the device under test. `UsbHost` speaks through a transceiver, an object with

* ``async send(packet)``: bytes from the PID on, to the device;
* ``async receive()``: the next packet of the device, or None if it sends none within 18 bit times
  (USB 2.0, 7.1.19.1);
* ``async idle(seconds)`` and ``async reset()``: bus states.
"""

from dataclasses import dataclass, field

__all__ = [
    "ACK", "DATA0", "DATA1", "IN", "NAK", "NYET", "OUT", "PING", "SETUP", "SOF", "STALL",
    "UsbError", "UsbHost", "crc16", "crc5", "data_packet", "handshake", "token",
]

OUT, IN, SOF, SETUP = 0x1, 0x9, 0x5, 0xD
DATA0, DATA1 = 0x3, 0xB
ACK, NAK, STALL, NYET = 0x2, 0xA, 0xE, 0x6
PING = 0x4


class UsbError(AssertionError):
    """The device broke a rule of USB, or did not answer."""


def _crc(bits, polynomial, width):
    """CRC of bits in the order of the wire: all ones first, inverted last (USB 2.0, 8.3.5)."""
    crc = (1 << width) - 1
    for bit in bits:
        top = crc >> width - 1 & 1
        crc = crc << 1 & (1 << width) - 1
        if top ^ bit:
            crc ^= polynomial
    crc ^= (1 << width) - 1
    return int(f"{crc:0{width}b}"[::-1], 2)  # sent from its highest bit on


def _bits(data):
    return [byte >> n & 1 for byte in data for n in range(8)]


def crc5(value: int) -> int:
    """Of the 11 bits of a token."""
    return _crc([value >> n & 1 for n in range(11)], 0b00101, 5)


def crc16(data: bytes) -> int:
    """Of the bytes of a data packet."""
    return _crc(_bits(data), 0x8005, 16)


def _pid(pid):
    return bytes([pid | (~pid & 0xF) << 4])


def token(pid: int, address: int, endpoint: int = 0) -> bytes:
    """A token, or with SOF and a frame number as the address a start of frame."""
    value = address | endpoint << 7
    return _pid(pid) + (value | crc5(value) << 11).to_bytes(2, "little")


def data_packet(pid: int, data: bytes) -> bytes:
    return _pid(pid) + data + crc16(data).to_bytes(2, "little")


def handshake(pid: int) -> bytes:
    return _pid(pid)


@dataclass
class UsbHost:
    """Transactions with one device.

    ``log`` has the PID of each packet of the device; ``retries`` counts the transactions that were
    repeated, for NAK or without an answer.
    """

    wire: object
    address: int = 0
    max_control: int = 8
    toggles: dict = field(default_factory=dict)
    log: list = field(default_factory=list)
    retries: int = 0
    retry_limit: int = 60

    async def receive(self):
        """``(pid, data)`` of the next packet; None without one."""
        packet = await self.wire.receive()
        if packet is None:
            return None
        pid = packet[0] & 0xF
        if packet[0] >> 4 != ~pid & 0xF:
            raise UsbError(f"a PID must be followed by its complement: {packet.hex()}")
        self.log.append(pid)
        if pid in (DATA0, DATA1):
            data, crc = packet[1:-2], int.from_bytes(packet[-2:], "little")
            if crc != crc16(data):
                raise UsbError(f"CRC16 must be {crc16(data):04x}, not {crc:04x}: {packet.hex()}")
            return pid, data
        if len(packet) != 1:
            raise UsbError(f"a handshake must be one byte: {packet.hex()}")
        return pid, b""

    def toggle(self, endpoint, direction):
        return self.toggles.setdefault((endpoint, direction), DATA0)

    def flip(self, endpoint, direction):
        self.toggles[endpoint, direction] ^= DATA0 ^ DATA1

    async def try_out(self, endpoint, data, *, pid=OUT, damage=False):
        """One OUT or SETUP transaction; the handshake, or None."""
        await self.wire.send(token(pid, self.address, endpoint))
        packet = data_packet(self.toggle(endpoint, OUT), data)
        if damage:
            packet = packet[:-1] + bytes([packet[-1] ^ 1])
        await self.wire.send(packet)
        answer = await self.receive()
        return answer and answer[0]

    async def out(self, endpoint, data, *, pid=OUT, lose=0):
        """Repeat an OUT transaction until its ACK; the first ``lose`` handshakes are lost."""
        for _ in range(self.retry_limit):
            answer = await self.try_out(endpoint, data, pid=pid)
            if answer in (ACK, NYET) and not lose:
                self.flip(endpoint, OUT)
                return
            lose -= answer == ACK and lose > 0
            if answer == STALL:
                raise UsbError(f"endpoint {endpoint} stalled")
            self.retries += 1
        raise UsbError(f"endpoint {endpoint} accepted no packet in {self.retry_limit} tries")

    async def try_in(self, endpoint, *, lose=False):
        """One IN transaction: data, or the PID of a handshake; None without an answer.

        With ``lose``, the packet of the device is not acknowledged.
        """
        await self.wire.send(token(IN, self.address, endpoint))
        answer = await self.receive()
        if answer is None or answer[0] not in (DATA0, DATA1):
            return answer and answer[0]
        if lose:
            return None
        await self.wire.send(handshake(ACK))
        if answer[0] != self.toggle(endpoint, IN):
            return None  # the device sent it again: its ACK was lost
        self.flip(endpoint, IN)
        return answer[1]

    async def in_(self, endpoint):
        """Repeat an IN transaction until it has data."""
        for _ in range(self.retry_limit):
            answer = await self.try_in(endpoint)
            if isinstance(answer, bytes):
                return answer
            if answer == STALL:
                raise UsbError(f"endpoint {endpoint} stalled")
            self.retries += 1
        raise UsbError(f"endpoint {endpoint} sent no data in {self.retry_limit} tries")

    async def control(self, request_type, request, value=0, index=0, length=0, data=b""):
        """A control transfer; the data of the device. Raises UsbError if it stalls."""
        size = len(data) or length
        packet = bytes([request_type, request]) + b"".join(
            part.to_bytes(2, "little") for part in (value, index, size)
        )
        self.toggles[0, OUT] = DATA0
        await self.out(0, packet, pid=SETUP)
        self.toggles[0, IN] = self.toggles[0, OUT] = DATA1
        received = b""
        if request_type & 0x80:
            while len(received) < size:
                part = await self.in_(0)
                received += part
                if len(part) < self.max_control:
                    break
            self.toggles[0, OUT] = DATA1
            await self.out(0, b"")
        else:
            for start in range(0, len(data), self.max_control):
                await self.out(0, data[start : start + self.max_control])
            self.toggles[0, IN] = DATA1
            if await self.in_(0):
                raise UsbError("a status stage must be empty")
        return received

    async def descriptor(self, kind, index=0, length=255, language=0):
        return await self.control(0x80, 6, kind << 8 | index, language, length)

    async def string(self, index):
        text = await self.descriptor(3, index, language=0x0409)
        if text[0] != len(text) or text[1] != 3:
            raise UsbError(f"a string descriptor must have its length and type: {text.hex()}")
        return text[2:].decode("utf-16-le")

    async def attach(self, address=5):
        """The least that a device needs before its endpoints work."""
        await self.wire.reset()
        self.address, self.toggles, self.max_control = 0, {}, 64
        await self.control(0, 5, address)
        self.address = address
        await self.control(0, 9, 1)
        self.toggles = {}

    async def enumerate(self, address=5):
        """What a system does when a device is plugged in; device and configuration descriptor."""
        await self.wire.reset()
        self.address, self.toggles = 0, {}
        start = await self.descriptor(1, length=8)
        self.max_control = start[7]
        await self.control(0, 5, address)
        self.address = address
        device = await self.descriptor(1, length=18)
        total = int.from_bytes((await self.descriptor(2, length=9))[2:4], "little")
        configuration = await self.descriptor(2, length=total)
        await self.control(0, 9, configuration[5])
        self.toggles = {}
        return device, configuration
