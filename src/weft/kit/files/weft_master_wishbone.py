"""Register accesses to a simulated Weft core over Wishbone."""

import random

from cocotbext.wishbone.driver import WBOp, WishboneMaster


class RegisterMaster:
    """A master on the core's register slave."""

    NAMES = {
        "cyc": "cyc_i", "stb": "stb_i", "we": "we_i", "adr": "adr_i", "datwr": "dat_i",
        "datrd": "dat_o", "ack": "ack_o", "sel": "sel_i", "err": "err_o",
    }

    def __init__(self, dut, clock, reset):
        names = self.NAMES | ({"stall": "stall_o"} if hasattr(dut, "wb_stall_o") else {})
        self.master = WishboneMaster(dut, "wb", clock, signals_dict=names, timeout=1000)
        self.rng = None

    def pause(self, seed, probability):
        """Wait 0 to 3 cycles before each access. Masters of other buses use ``probability``."""
        self.rng = random.Random(seed)

    async def access(self, address, value=None):
        """Read a word, or write ``value``: the word read (or None), and whether no error came."""
        idle = self.rng.randrange(4) if self.rng else 0
        [answer] = await self.master.send_cycle(
            [WBOp(adr=address // 4, dat=value, idle=idle, sel=15)]
        )
        return (int(answer.datrd) if value is None else None), answer.ack == 1
