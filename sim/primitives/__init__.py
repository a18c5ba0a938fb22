"""Verilog models of FPGA primitives, written from the vendors' documents."""

from pathlib import Path

__all__ = ["ECP5_MODELS", "GOWIN_MODELS", "ICE40_MODELS"]

ECP5_MODELS = Path(__file__).with_name("ecp5.v")
GOWIN_MODELS = Path(__file__).with_name("gowin.v")
ICE40_MODELS = Path(__file__).with_name("ice40.v")
