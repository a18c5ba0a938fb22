"""The rules of the registers of a network core: lists that start, and transfers."""

from amaranth.hdl import Signal, signed

from verif.formal.registers import BankRules
from weft.network_core.descriptors import NetworkState

__all__ = ["NetworkRegisterRules"]


class NetworkRegisterRules(BankRules):
    """`weft.hw.bus.network_wrapper.NetworkBank` agrees with a model that has the same inputs.

    The model knows whether a list runs, and the words that a transfer expects.

    Parameters
    ----------
    ip : NetworkIp
    """

    PINS = BankRules.PINS | {
        "state": 8, "finished": 1, "begin": 1, "refused": 1, "base": 32, "limit": 32,
        "memory_busy": 1, "transfer_write": 1, "transfer_read": 1, "transfer_count": 32,
        "write_words_valid": 1, "write_words_ready": 1, "write_words_payload": 32,
        "read_words_valid": 1, "read_words_ready": 1, "read_words_payload": 32, "read_level": 9,
        "next_valid": 1,
    }
    RULES = BankRules.RULES | BankRules.FIFO_RULES | {
        "window": "a list begins only if BASE is below LIMIT, and LIMIT is at most `words`",
        "one_list": "a list begins only if no other list runs",
        "started": "a list begins or is refused a cycle after a write to CONTROL that asks for it",
        "transfer": "a transfer starts exactly with a write to MEMORY_WRITE or MEMORY_READ while no"
                    " transfer and no soft reset is in progress; its count is the word written",
    }
    COVERS = BankRules.COVERS | {"begins": "a list begins", "refuses": "a list is refused"}

    def events(self):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        ended = self.running & (self.finished | self.abort)
        failed = self.abort | (self.state != NetworkState.DONE)
        return {"done": ended, "failed": ended & failed, "refused": self.refused}

    def __init__(self, ip):
        super().__init__(ip)
        self.running = Signal()  # a list has begun, and has not ended

    def waits(self, m):
        """Assume that a word follows ``next_valid`` in the next cycle.

        A read of READ_FIFO waits while the FIFO has words and none is valid.
        """
        self.assume(m, ~self.past(m, self.next_valid) | self.read_words_valid)
        return {"read_words": (self.read_level != 0) & ~self.read_words_valid}

    def effects(self, m):
        """Checks the FIFO ports and transfers; returns overflow and underflow."""
        done = self.bus_response_valid & self.write & ~self.bus_response_payload_error
        free = ~self.memory_busy & ~self.reset_busy
        asks = {
            kind: done & (self.addr == self.addr_of(f"memory_{kind}")) for kind in ("write", "read")
        }
        starts = self.transfer_write | self.transfer_read
        self.check(m, "transfer", (self.transfer_write == (asks["write"] & free))
                   & (self.transfer_read == (asks["read"] & free))
                   & (~starts | (self.transfer_count == self.data)))
        left = Signal(signed(32), init=-1)  # words that the transfer expects, less 1
        with m.If(self.reset | self.reset_busy):
            m.d.sync += left.eq(-1)
        with m.Elif(self.transfer_write):
            m.d.sync += left.eq((self.transfer_count - 1) >> 2)
        with m.Elif(self.write_words_valid & self.write_words_ready):
            m.d.sync += left.eq(left - 1)
        return self.fifos(
            m, (self.write_words_valid, self.write_words_ready, self.write_words_payload),
            (self.read_words_valid, self.read_words_ready, self.read_words_payload),
            self.read_level != 0, left >= 0,
        )

    def check_state(self, m, written):
        """Checks when a list begins."""
        start_written = Signal()  # CONTROL was written with its bit `start` in the cycle before
        control = written & (self.addr == self.addr_of("control"))
        m.d.sync += start_written.eq(control & self.data[2])
        ends = self.finished | self.abort | self.reset | self.reset_busy
        with m.If(ends):
            m.d.sync += self.running.eq(0)
        with m.Elif(self.begin):
            m.d.sync += self.running.eq(1)
        legal = (self.base < self.limit) & (self.limit <= self.ip.config.words)
        self.check(m, "window", ~self.begin | legal)
        self.check(m, "one_list", ~self.begin | ~self.running)
        transfers = written & (
            (self.addr == self.addr_of("memory_write")) | (self.addr == self.addr_of("memory_read"))
        )
        begin, refused = self.begin, self.refused
        self.check(m, "started", (~begin | start_written) & (~start_written | begin | refused)
                   & (~refused | start_written | transfers) & ~(begin & refused & ~transfers))
        self.cover(m, "begins", self.begin)
        self.cover(m, "refuses", start_written & self.refused)
