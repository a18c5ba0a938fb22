"""Testbenches of IP cores with bus models of third parties; cocotb runs the tests of `MODULES`."""

MODULES = ("weft.sim.ip.jobs", "weft.sim.ip.misuse", "weft.sim.ip.resets")
