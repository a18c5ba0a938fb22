"""Two signed 8 x 8 bit products in one DSP block of the UltraPlus."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetSignal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_accumulator import registered

__all__ = ["PairMultiplier"]


class PairMultiplier(wiring.Component):
    """``product[n] <= a[n] * b[n]``, LATENCY cycles later, all of it in an SB_MAC16.

    The block multiplies 8 x 8 bits twice and uses all of its registers: at its operands, at its
    products, and at its adders, which add 0.

    Attributes
    ----------
    a, b : In, 2 x signed 8 bits
        The factors.
    product : Out, 2 x signed 16 bits
        LATENCY cycles after the factors.

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    LATENCY = 3

    a: In(data.ArrayLayout(signed(8), 2))
    b: In(data.ArrayLayout(signed(8), 2))
    product: Out(data.ArrayLayout(signed(16), 2))

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            for a, b, product in zip(self.a, self.b, self.product, strict=True):
                p_product = registered(m, registered(m, a) * registered(m, b))
                m.d.sync += product.eq(p_product)
            return m
        reset = ResetSignal(allow_reset_less=True)
        halves = {}
        for half in ("TOP", "BOT"):
            halves |= {
                f"p_{half}_8x8_MULT_REG": Const(1, 1),
                f"p_{half}OUTPUT_SELECT": Const(1, 2),  # the register behind the adder
                f"p_{half}ADDSUB_LOWERINPUT": Const(1, 2),  # adds the product of 8 x 8 bits
                f"p_{half}ADDSUB_UPPERINPUT": Const(1, 1),  # to C or D
                f"p_{half}ADDSUB_CARRYSELECT": Const(0, 2),
                **{f"i_{name}{half}": Const(0, 1) for name in ("ADDSUB", "OHOLD", "OLOAD")},
                **{f"i_{name}{half}": reset for name in ("IRST", "ORST")},
            }
        m.submodules.block = Instance(
            "SB_MAC16", i_CLK=ClockSignal(), i_CE=Const(1, 1),
            **{f"p_{name}_REG": Const(name in "AB", 1) for name in "ABCD"},
            **{f"p_PIPELINE_16x16_MULT_REG{n}": Const(0, 1) for n in (1, 2)},
            **{f"p_{name}": Const(1, 1) for name in ("A_SIGNED", "B_SIGNED", "MODE_8x8")},
            p_NEG_TRIGGER=Const(0, 1), **halves,
            i_A=self.a.as_value(), i_B=self.b.as_value(), i_C=Const(0, 16), i_D=Const(0, 16),
            o_O=self.product.as_value(),
            **{f"i_{name}HOLD": Const(0, 1) for name in "ABCD"},
            **{f"i_{name}": Const(0, 1) for name in ("CI", "ACCUMCI", "SIGNEXTIN")},
        )
        return m
